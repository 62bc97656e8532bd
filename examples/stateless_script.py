"""A session whose turns ten processes take: an agent stores nothing, so any of them can continue.

    python examples/stateless_script.py
    python examples/stateless_script.py --model openai:NAME --base-url http://127.0.0.1:8000/v1

The context of the session is all that goes from one process to the next. During the session, a plan
waits for an approval, and steps ask questions. The person is in the program: `said` approves by key
and fingerprint, answers questions by key, and makes a new request if nothing waits.
The model is the offline one, or the one that `--model` or REPLAN_MODEL names.
"""

import asyncio
import json
import os
import secrets
import subprocess
import sys
from argparse import ArgumentParser
from typing import Any

from replan import ExecutionContext, Host, Specialist, Team, ask_user
from replan.sessions import AgentContext, build_agent

KEY = "SESSION_KEY"
TURNS = 10

arguments = ArgumentParser(description="Take ten turns of a session, each in its own process.")
arguments.add_argument("--model", default=os.environ.get("REPLAN_MODEL", "offline"))
arguments.add_argument("--base-url")
arguments.add_argument("--turn", action="store_true", help="take one turn, as JSON from stdin")
given = arguments.parse_args()


def paint(context: ExecutionContext) -> str:
    """Paint what the step names, in a colour that a person chooses."""
    work = context.task_description
    return f"{work}: done in {ask_user(f'Which colour? ({work})')}"


def turn() -> None:
    """The work of each process: read the message and the context, and write the result."""
    painter = Specialist(name="painter", intended_use="Paints a room.", run=paint, effects="pure")
    team = Team(Host(given.model), [painter], approval="always")
    agent = build_agent(team, context_key=os.environ[KEY], base_url=given.base_url)
    asked = json.load(sys.stdin)
    context = AgentContext.from_dict(asked["context"])
    result = asyncio.run(agent.process(asked["said"], context))
    after = context.apply(result.context_updates).to_dict()
    json.dump({"result": result.to_dict(), "context": after}, sys.stdout)


def said(metadata: dict[str, Any], requests: list[str], colours: list[str]) -> Any:
    """The person's next message, given the last result."""
    if plan := metadata.get("approval"):
        return {plan["key"]: {"action": "approve", "fingerprint": plan["fingerprint"]}}
    if questions := metadata.get("questions"):
        # Of two questions, the second one is answered first: each has its key.
        return {questions[-1]["key"]: colours.pop(0)}
    return requests.pop(0)


def main() -> None:
    """Pass the context from process to process."""
    hall, cellar = "Paint the hall @painter; paint the attic @painter", "Paint the cellar @painter"
    requests = [hall, cellar, *(f"calculate {n} * {n}" for n in range(3, TURNS + 3))]
    colours = ["grey", "blue", "white", *["green"] * TURNS]
    words = [sys.executable, __file__, *sys.argv[1:], "--turn"]
    environment = {**os.environ, KEY: secrets.token_hex()}
    context, metadata = AgentContext(session_id="house").to_dict(), dict[str, Any]()
    for number in range(1, TURNS + 1):
        asked = {"said": said(metadata, requests, colours), "context": context}
        told = subprocess.check_output(words, input=json.dumps(asked), text=True, env=environment)  # noqa: S603
        result, context = (json.loads(told)[name] for name in ("result", "context"))
        metadata = result["metadata"]
        print(f"process {number}: {metadata.get('stage')}: {result['response'] or result['error']}")


if __name__ == "__main__":
    turn() if given.turn else main()
