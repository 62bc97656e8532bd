"""A step with a second attempt, and a failure that the plan provides for.

    python examples/retry_and_route_around.py

Step 1 breaks off once and is tried again by itself. Step 2 fails for good, so step 3 runs, which is
there for that case, and step 4 continues with what it found. No model decides anything here; the
offline one, or that of REPLAN_MODEL, only joins the results.
"""

import os

from replan import (
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
# Rates of the day

- [ ] 1. Fetch the rates in EUR @fetcher (retries 2)
- [ ] 2. Fetch the rates in NOK @fetcher
- [ ] 3. Take the rates in NOK of yesterday @archive (if 2 failed)
- [ ] 4. Write the list @scribe (after 1, 2, 3)
"""


def fetch(context: ExecutionContext) -> str | SpecialistResult:
    """Fetch rates: the first attempt fails, and there are none in NOK."""
    if "NOK" in context.task_description:
        return SpecialistResult(status=ExecutionStatus.FAILED, error="no such list", retry=False)
    if context.attempt == 1:
        raise ConnectionError("reset by peer")
    return "1 EUR = 1.08 USD"


def look_up(_: ExecutionContext) -> str:
    """Look in the archive."""
    return "1 NOK = 0.09 USD"


def write(context: ExecutionContext) -> str:
    """List the available rates."""
    return "; ".join(context.inputs.values())


team = [
    Specialist(name="fetcher", intended_use="Fetches rates.", run=fetch, effects="pure"),
    Specialist(name="archive", intended_use="Has old rates.", run=look_up),
    Specialist(name="scribe", intended_use="Writes lists.", run=write),
]
host = Host(model=os.environ.get("REPLAN_MODEL", "offline"))
result = run_sync(build_graph(Team(host=host, specialists=team)), {"plan": PLAN})
for step in result.plan.steps if result.plan else ():
    print(step.id, step.status, f"retries: {step.retry_count}", step.feedback)
print(result.results["4/scribe"].text)
print(result.outcome)
