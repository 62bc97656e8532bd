"""What a run waits for, as every door shows it, and a changed plan among the answers."""

from collections.abc import Mapping, Sequence
from typing import Self

from pydantic import JsonValue

from replan.base.errors import InputError
from replan.base.values import Value
from replan.nodes.host.plan_bounds import check_outside_plan
from replan.plan.markdown.document import PlanDocument
from replan.plan.model import TaskPlan
from replan.specialists.services import Services
from replan.state.person.answers import named_answers, read_decision
from replan.state.questions import Question, QuestionKind


class PendingQuestion(Value):
    """One thing that a run waits for.

    Attributes:
        key: The name that an answer uses.
        kind: `question`, `approval` of a tool's call, `unknown_outcome`, or `plan`.
        text: The question; for a plan, its document.
        step_id: The step that asks; 0 if the host does.
        who: The step and the specialist that ask; empty if the host does.
        details: For a tool's call, the tool and its arguments; for a plan, its `version`, the
            `reason` for it and its `changes`.
        choices: The answers that it takes; empty if it takes any.
        remarks: For a plan, its reason and its changes.
        problem: Why the last answer could not be used.
        draft: For a plan, the changed document that could not be used.
        fingerprint: Names exactly this; an answer may carry it.
        response_schema: The JSON schema of an answer.
    """

    key: str
    kind: QuestionKind
    text: str
    step_id: int
    who: str
    details: JsonValue
    choices: tuple[str, ...]
    remarks: tuple[str, ...]
    problem: str
    draft: str
    fingerprint: str
    response_schema: JsonValue

    @classmethod
    def of(cls, question: Question) -> Self:
        """Select what a person is shown of a question."""
        return cls(**{name: getattr(question, name) for name in cls.model_fields})


def check_changed_plan(
    questions: Sequence[Question],
    answers: Mapping[str, JsonValue],
    services: Services,
    plan: TaskPlan,
) -> None:
    """Refuse a decision that changes a plan beyond what its team allows.

    Raises:
        PlanDocumentError: Names every option of a step that is looser.
    """
    for question in (question for question in questions if question.kind == "plan"):
        try:
            decision = read_decision(named_answers(answers, questions).get(question.key))
        except InputError:
            # What is no decision is for the run to refuse.
            continue
        if decision.action == "edit":
            # That of a team in a step is not the plan of this run.
            before = PlanDocument.recover(question.text).plan if question.path else plan
            check_outside_plan(decision.plan, services, before)
