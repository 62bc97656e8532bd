"""A plan document that is run as it is, and comes back with marks and results.

    python examples/plan_document.py

Step 1 is marked as done, with its result below it, so it is not run again. The comment, the section
after the steps and the spacing stay as they were written. Nothing of this needs a model; the answer
is joined by the offline one, or by the one of REPLAN_MODEL.
"""

import os

from replan import (
    ExecutionContext,
    Host,
    PlanDocument,
    PlanDocumentError,
    Specialist,
    Team,
    build_graph,
    run_sync,
)

PLAN = """\
# Move the library

<!-- agreed with the caretaker on Friday -->

- [x] 1. Count the shelves @surveyor

  > 12 shelves

- [ ] 2. Count the boxes @surveyor
- [ ] 3. Say how long it takes @foreman (after 1, 2; timeout 20s)

## Who to call

Ms Berg, 555 0117.
"""


def survey(context: ExecutionContext) -> str:
    """Count what the step names."""
    return "40 boxes" if "boxes" in context.task_description else "12 shelves"


def estimate(context: ExecutionContext) -> str:
    """Estimate from the results of earlier steps, whichever specialist did them."""
    return f"Two days, for {context.inputs[1]} and {context.inputs[2]}."


team = [
    Specialist(name="surveyor", intended_use="Counts things.", run=survey),
    Specialist(name="foreman", intended_use="Estimates work.", run=estimate),
]
host = Host(model=os.environ.get("REPLAN_MODEL", "offline"))
result = run_sync(build_graph(Team(host=host, specialists=team)), {"plan": PLAN})
print(result.document)

# A person's plan is read strictly: every mistake has a position and a fix.
try:
    PlanDocument.parse(PLAN.replace("after 1, 2", "after 1, 7"))
except PlanDocumentError as error:
    print(error)
