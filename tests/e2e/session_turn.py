"""One turn of a session in a process of its own.

`python session_turn.py SERVER SESSION EFFECTS INPUT [kill]` takes the context from the file SESSION
and puts it back; what tools do is a line in the file EFFECTS, with its key. With `kill` the process
is killed as soon as it has paid. It prints the result.
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from replan import ExecutionContext, Host, Specialist, Team, ask_user
from replan.adapters.chat_models import LangChainModels
from replan.sessions import AgentContext, build_agent

KEY = "a key that all of them have"


def team_of(effects: Path, *, is_killed: bool) -> Team:
    def effect(name: str, key: str) -> None:
        with effects.open("a") as file:
            file.write(f"{name} {key}\n")

    def pay(amount: int, idempotency_key: str) -> str:
        """Pay.

        Args:
            amount: How much.
        """
        effect("pay", idempotency_key)
        if is_killed:
            os.kill(os.getpid(), signal.SIGKILL)
        return f"paid {amount}"

    def ship(place: str, idempotency_key: str) -> str:
        """Have it shipped.

        Args:
            place: Where to.
        """
        effect("ship", idempotency_key)
        return f"shipped to {place}"

    def choose(context: ExecutionContext, idempotency_key: str) -> str:
        colour = ask_user("Which colour?")
        effect("choose", idempotency_key)
        return f"{context.task_description}: {colour}"

    tools: Any = {"tools": [pay, ship], "approve": ["ship"]}
    return Team(
        host=Host(model="openai:m"),
        specialists=[
            Specialist(name="asker", intended_use="Asks.", run=choose),
            Specialist(name="buyer", intended_use="Buys.", chat_model="openai:m", **tools),
        ],
    )


def turn(server: str, session: str, effects: str, given: str, *kill: str) -> None:
    place = Path(session)
    context = AgentContext.from_dict(json.loads(place.read_text()))
    team = team_of(Path(effects), is_killed=bool(kill))
    agent = build_agent(team, context_key=KEY, models=LangChainModels(base_url=server))
    result = asyncio.run(agent.process(json.loads(given), context))
    place.write_text(json.dumps(context.apply(result.context_updates).to_dict(), sort_keys=True))
    sys.stdout.write(json.dumps(result.to_dict()))


if __name__ == "__main__":
    turn(*sys.argv[1:])
