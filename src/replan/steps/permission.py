"""The approval that a step with `ask first` needs before its first attempt."""

from pydantic import JsonValue

from replan.errors import InputError
from replan.state.person.answers import read_decision
from replan.state.questions import Decision
from replan.steps.step_record import Asker, StepRecord


def permission_to_begin(record: StepRecord, asker: Asker) -> Decision:
    """Ask a person whether the step may begin, again while the answer cannot be read.

    An approval is of the work that was shown: after a change of it, or once the step is reopened,
    it is asked for anew.

    Raises:
        Waiting: There is no answer yet.
        QuestionError: The run asks no more questions.
    """
    step = record.context.plan_step
    arguments: dict[str, JsonValue] = {"task": step.description}
    if step.brief:
        arguments["brief"] = step.brief
    details: JsonValue = {
        "tool": f"step {step.id}",
        "arguments": arguments,
        "call": record.keys.attempt,
    }
    question = f"May step {step.id} begin at @{record.specialist}?"
    text = question
    while True:
        try:
            decision = read_decision(asker.ask(text, "approval", details))
        except InputError as error:
            text = f"{question} {error}"
            continue
        if decision.action != "edit":
            return decision
        text = f"{question} Approve or reject it; to change it, change the plan."
