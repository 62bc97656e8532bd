"""What a specialist is shown."""

from pathlib import Path

from langchain_core.messages import AIMessage, HumanMessage

from replan import PlanStep
from replan.memory.conversation import Seen
from replan.steps.step_run import context_of

STEP = PlanStep(id=2, description="Compare", parameters={"b": [1], "a": None}, dependencies=(1,))


def test_a_specialist_sees_its_step_the_conversation_and_what_it_depends_on(services):
    said = [HumanMessage("Trains to Oslo?"), AIMessage("Two."), HumanMessage("And Bergen?")]
    state = {"run_id": "r", "current_round": 3, "messages": said}
    live = services(workspace=Path("work"))
    context = context_of(STEP, {1: "The EU text."}, "key", state, live, Seen(said, "They met."))
    assert (context.task_description, context.summary) == ("Compare", "They met.")
    assert context.parameters == STEP.parameters
    assert [message.text for message in context.messages] == [
        "Trains to Oslo?",
        "Two.",
        "And Bergen?",
    ]
    assert (context.inputs, context.workspace) == ({1: "The EU text."}, "work")
    assert (context.run_id, context.round, context.attempt) == ("r", 3, 1)
    assert context.idempotency_key == "key"


def test_a_context_can_be_built_before_anything_was_thought(services):
    context = context_of(STEP, {}, "", {}, services(), Seen([]))
    assert (context.messages, context.workspace, context.run_id) == ((), None, "")
