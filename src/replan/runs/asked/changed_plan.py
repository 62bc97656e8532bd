"""A changed plan among the answers of somebody outside the process."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from pydantic import JsonValue

from replan.errors import InputError
from replan.host.outside_plan import check_outside_plan
from replan.plan.model import TaskPlan
from replan.runs.asked.asks import PLAN, Ask, answers_by_key
from replan.services import Services
from replan.state.person.answers import read_decision, unwrapped_answer
from replan.state.person.reviews import plan_decided


def check_changed_plan(
    asks: Sequence[Ask], answers: Mapping[str, JsonValue], services: Services, plan: TaskPlan
) -> None:
    """Refuse a decision that changes a plan beyond what its team allows.

    Raises:
        PlanDocumentError: Names every option of a step that is looser.
    """
    for ask in (each for each in asks if each.kind == PLAN):
        # What is no decision is for the run to refuse.
        with suppress(InputError):
            given = answers_by_key(answers, asks).get(ask.key)
            bound = unwrapped_answer(given, PLAN, ask.fingerprint)
            decision = read_decision(plan_decided(bound))
            if decision.action == "edit":
                check_outside_plan(decision.plan, services, plan)
