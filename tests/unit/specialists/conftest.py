"""One step for the tests of specialists."""

import pytest
from langchain_core.messages import HumanMessage

from replan import ExecutionContext, PlanStep


@pytest.fixture
def context():
    """The context of one step, with a request and a result to work on."""
    return ExecutionContext(
        task_description="Compare both",
        plan_step=PlanStep(id=3, description="Compare both"),
        messages=(HumanMessage("Which policy is better?"),),
        inputs={1: "The EU text."},
    )
