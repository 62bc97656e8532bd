"""One turn of a kept session in a process of its own, to be killed in the middle.

`python kept_turn.py SERVER STORAGE EFFECTS TURN INPUT [KILL]` takes the turn and prints the result.
With KILL `pay` the process is killed as soon as it has paid, with `append` when all is done and
nothing of the turn is kept yet.
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from session_turn import team_of

from replan import Storage, open_storage
from replan.adapters.chat_models import LangChainModels
from replan.sessions import ClientAgentAdapter, build_agent


def killed(storage: Storage) -> None:
    """Kill the process instead of keeping a turn."""

    async def append(*_: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    storage.sessions.append = append


async def turn(server: str, where: str, effects: str, name: str, given: Any, kill: str) -> None:
    """Take the turn."""
    team = team_of(Path(effects), is_killed=kill == "pay")
    agent = build_agent(team, models=LangChainModels(base_url=server))
    async with open_storage(where) as storage:
        if kill == "append":
            killed(storage)
        client = ClientAgentAdapter(storage, agent, user="anna")
        result = await client.process("s", given, turn_id=name)
    sys.stdout.write(json.dumps(result.to_dict()))


if __name__ == "__main__":
    words = [*sys.argv[1:], ""]
    asyncio.run(turn(*words[:4], json.loads(words[4]), words[5]))
