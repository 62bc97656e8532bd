"""A specialist as a function: its view of a step, and what it can return.

    python examples/function_specialist.py

It receives the parameters of its step, the results of its dependencies, and a folder to write in.
It may return text, or a result with a status, a confidence and files. The plan is handed in, so a
model only combines the results: the offline one, or the one that REPLAN_MODEL names.
"""

import asyncio
import os
import tempfile
from pathlib import Path

from replan import (
    Artifact,
    ExecutionContext,
    ExecutionStatus,
    Host,
    Specialist,
    SpecialistResult,
    Team,
    build_graph,
    run_sync,
)

PLAN = """\
# The halls

- [ ] 1. Measure the hall @sensor

  ```yaml
  room: hall
  ```

- [ ] 2. Measure the cellar @sensor

  ```yaml
  room: cellar
  ```

- [ ] 3. Write down what was measured @scribe (after 1)
"""
DEGREES = {"hall": 21}


async def measure(context: ExecutionContext) -> str | SpecialistResult:
    """Measure the room that the parameters name; async and plain functions both work."""
    await asyncio.sleep(0)
    room = str(context.parameters["room"])
    if room not in DEGREES:
        # `retry=False`: a retry would give the same. An exception would be a failed result, too.
        problem = f"There is no sensor in the {room}."
        return SpecialistResult(status=ExecutionStatus.FAILED, error=problem, retry=False)
    return f"{room}: {DEGREES[room]} degrees"


def write_down(context: ExecutionContext) -> SpecialistResult:
    """Write a file to the workspace, and add it to the result."""
    Path(context.workspace or ".", "log.txt").write_text("\n".join(context.inputs.values()))
    log = Artifact(path="log.txt", title="Log", media_type="text/plain")
    return SpecialistResult(confidence=0.9, artifacts=(log,))


with tempfile.TemporaryDirectory() as folder:
    config = Team(
        host=Host(model=os.environ.get("REPLAN_MODEL", "offline")),
        specialists=[
            Specialist(name="sensor", intended_use="Measures a room.", run=measure, effects="pure"),
            Specialist(name="scribe", intended_use="Writes things down.", run=write_down),
        ],
        workspace=folder,
    )
    ended = run_sync(build_graph(config), {"plan": PLAN})
    for key, result in sorted(ended.results.items()):
        files = [artifact.path for artifact in result.artifacts]
        print(key, result.status, result.text or result.error or files)
    print(Path(folder, "log.txt").read_text())
    print(ended.outcome)
