"""The approval that a step needs before its first attempt: by its line, or by its specialist."""

from pydantic import JsonValue

from replan.base.errors import InputError
from replan.log.transcript import plain
from replan.prompts.sections import within_budget
from replan.specialists.steps.step_record import Asker, StepRecord
from replan.state.person.answers import read_decision
from replan.state.questions import Decision
from replan.state.team import SpecialistCard

LONGEST_INPUT = 2_000
"""Characters of a result of another step that the question shows."""


def permission_to_begin(record: StepRecord, card: SpecialistCard, asker: Asker) -> Decision:
    """Ask a person whether the step may begin, again while the answer cannot be read.

    An approval is of the work that was shown: after a change of it, or once the step is reopened,
    it is asked for anew.

    Raises:
        Waiting: There is no answer yet.
        QuestionError: The run asks no more questions.
    """
    step = record.context.plan_step
    inputs = record.context.inputs.items()
    shown: dict[str, JsonValue] = {
        "task": step.description,
        "brief": step.brief,
        "parameters": plain(step.parameters),
        "inputs": {str(step_id): within_budget(text, LONGEST_INPUT) for step_id, text in inputs},
        "does": card.intended_use,
        "effects": card.effects,
    }
    details: JsonValue = {
        "tool": f"step {step.id}",
        "arguments": {name: value for name, value in shown.items() if value},
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
