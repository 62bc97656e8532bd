"""Limits: a run that cannot finish its plan still answers, and says what is missing.

    python examples/limits.py

Four steps are planned, three are allowed, and one of these takes too long. The offline model, or
that of REPLAN_MODEL, writes the answer; a rule adds what was not done.
"""

import asyncio
import os

from replan import (
    ExecutionContext,
    Host,
    Limits,
    Specialist,
    Team,
    build_graph,
    run_sync,
)

PLAN = """\
# Read the meters

- [ ] 1. Read the meter of flat 1 @reader
- [ ] 2. Read the meter of flat 2 @reader
- [ ] 3. Read the meter of flat 3 @reader
- [ ] 4. Read the meter of flat 4 @reader
"""


async def read(context: ExecutionContext) -> str:
    """Read a meter; that of flat 2 never answers."""
    if context.plan_step.id == 2:  # noqa: PLR2004 - the flat
        await asyncio.Event().wait()
    return f"{context.plan_step.id * 111} kWh"


config = Team(
    host=Host(model=os.environ.get("REPLAN_MODEL", "offline")),
    specialists=[
        Specialist(name="reader", intended_use="Reads a meter.", run=read, effects="pure")
    ],
    limits=Limits(max_steps=3, step_timeout=0.2, step_retries=0, max_rounds=2),
)
result = run_sync(build_graph(config), {"plan": PLAN})
print(result.text)
print()
print(f"{result.outcome}, limit reached: {result.limit_reached or 'none'}")
