"""A changed plan among the answers of somebody outside the process."""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from replan.base.errors import InputError
from replan.nodes.host.plan_bounds import check_outside_plan
from replan.plan.markdown.document import PlanDocument
from replan.plan.model import TaskPlan
from replan.specialists.services import Services
from replan.state.person.answers import named_answers, read_decision
from replan.state.questions import Question


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
