"""Turns a model's text into a plan: read, complained about once, then recovered."""

from collections.abc import Sequence
from typing import NamedTuple

from langchain_core.messages import BaseMessage

from replan.errors import LimitReachedError, ModelCallError
from replan.host.host_call import HostCall
from replan.host.plan_mistakes import mistakes_in
from replan.models.reply_end import WHOLE, ReplyEnd
from replan.plan.markdown.document import PlanDocument, refresh_content, too_large
from replan.plan.markdown.rendering import render
from replan.plan.merging import as_new_plan
from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.replies.readings import SHORTER, read_answer
from replan.services import Services
from replan.state.team import SpecialistCard, find_specialist, refusal_text, refusals_of
from replan.texts.bounds import MODEL_PLAN

LONGEST_LINE = 300
"""Characters of a request that fit into the line of a step."""


class PlanText(NamedTuple):
    """The plan in a model's reply."""

    text: str
    end: ReplyEnd = WHOLE  # how the reply ended; none of one that was cut off is used


async def read_model_plan(
    found: PlanText, call: HostCall, prompt: list[BaseMessage]
) -> tuple[TaskPlan, str]:
    """Return the plan that a model's text holds, and what is still wrong with the text.

    A text with mistakes is shown to the model once, with all of them. What can be read of the
    second text, or else of the first, is used. A plan without steps means that nothing could be
    read; a text that was cut off is never used.
    """
    team = call.services.team
    first = _document_of(found).plan
    complaint = complaint_about(found, team)
    if not complaint:
        return first, ""
    problem = f"This plan has mistakes:\n{complaint}\nWrite the whole plan again, fixed."
    try:
        reply = await call.ask_again(call.services.models.planning, prompt, found.text, problem)
    except (LimitReachedError, ModelCallError):
        return first, complaint
    again = PlanText(call.told(read_answer(reply)).body, call.end)
    second = _document_of(again).plan
    return (second, complaint_about(again, team)) if second.steps else (first, complaint)


def _document_of(found: PlanText) -> PlanDocument:
    """Read a plan; one that is cut off, or too large for a model, is not read at all."""
    is_unread = found.end.cut or too_large(found.text, MODEL_PLAN)
    return PlanDocument.recover("" if is_unread else found.text)


def complaint_about(found: PlanText, team: Sequence[SpecialistCard]) -> str:
    """The mistakes of a model's document and of its names, one line each."""
    if found.end.cut:
        return f"{found.end.problem} {SHORTER}"
    document = _document_of(found)
    # The marks of a model's own plan do not count: all of its steps are to be done.
    steps = [step.replace(status=StepStatus.PENDING) for step in document.plan.steps]
    refused = (refusal_text(each, document) for each in refusals_of(steps, team))
    problems = mistakes_in(found.text, document, team)
    return "\n".join([*problems, *refused])


def plan_with_team_names(plan: TaskPlan, team: Sequence[SpecialistCard]) -> TaskPlan:
    """The plan with names as the team writes them; unknown names are not changed."""
    steps = tuple(with_team_names(step, team) for step in plan.steps)
    return plan if steps == plan.steps else with_fitting_document(plan.replace(steps=steps))


def new_plan_of_model(plan: TaskPlan, services: Services) -> TaskPlan:
    """A model's first plan: its names are the team's, and its marks and results do not count."""
    return as_new_plan(plan_with_team_names(plan, services.team), services.clock())


def one_step_plan(request: str) -> TaskPlan:
    """The plan if none could be read: the request itself as its only step."""
    line = " ".join(request.split()) or "Do what was asked."
    is_long = len(line) > LONGEST_LINE
    step = PlanStep(id=1, description=line[:LONGEST_LINE], brief=request if is_long else "")
    plan = TaskPlan(steps=(step,))
    return plan.replace(content=render(plan))


def direct_plan(request: str, specialist: str) -> TaskPlan:
    """The plan of a team without a host: one step, with all words of the request."""
    (step,) = one_step_plan(request).steps
    brief = "" if step.description == request else request
    plan = TaskPlan(steps=(step.replace(brief=brief, assigned_to=specialist),))
    return plan.replace(content=render(plan))


def with_fitting_document(plan: TaskPlan) -> TaskPlan:
    """The plan with a matching document; a document that stays faulty is written again."""
    kept = refresh_content(plan)
    if PlanDocument.recover(kept.content).mistakes:
        return plan.replace(content=render(plan))
    return kept


def with_team_names(step: PlanStep, team: Sequence[SpecialistCard]) -> PlanStep:
    names = tuple(dict.fromkeys(find_specialist(name, team) or name for name in step.specialists))
    if names == step.specialists:
        return step
    return step.replace(assigned_to=names[0] if names else "", joined_by=names[1:])
