"""Turns a model's text into a plan: read, with what is wrong, and recovered."""

from collections.abc import Sequence

from replan.base.texts.bounds import MODEL_PLAN
from replan.models.reply_end import WHOLE, ReplyEnd
from replan.nodes.host.plan_mistakes import mistakes_in
from replan.plan.markdown.document import PlanDocument, refresh_content, too_large
from replan.plan.markdown.rendering import render
from replan.plan.merging import as_new_plan
from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.replies.readings import SHORTER, Reading, read_answer
from replan.specialists.services import Services
from replan.state.team import SpecialistCard, find_specialist, refusal_text, refusals_of

LONGEST_LINE = 300
"""Characters of a request that fit into the line of a step."""


class PlanReading(Reading):
    """What a reply says that should be a plan; without steps if nothing could be read."""

    plan: TaskPlan = TaskPlan()

    @property
    def complaint(self) -> str:
        return f"This plan has mistakes:\n{self.wrong}\nWrite the whole plan again, fixed."


def read_plan(reply: str, team: Sequence[SpecialistCard], end: ReplyEnd = WHOLE) -> PlanReading:
    """Read the plan in a model's reply; what is wrong are its mistakes and names, one a line.

    A text that was cut off is not read at all, nor one that is too large for a model.
    """
    answer = read_answer(reply)
    text, problem = answer.body, f"{end.problem} {SHORTER}" if end.cut else ""
    is_unread = end.cut or too_large(text, MODEL_PLAN)
    document = PlanDocument.recover("" if is_unread else text)
    if not end.cut:
        # The marks of a model's own plan do not count: all of its steps are to be done.
        steps = [
            step if step.status is StepStatus.PENDING else step.replace(status=StepStatus.PENDING)
            for step in document.plan.steps
        ]
        refused = (refusal_text(each, document) for each in refusals_of(steps, team))
        problem = "\n".join([*mistakes_in(text, document, team), *refused])
    done = "the steps that could be read" if document.plan.steps else "a plan of one step"
    return PlanReading(
        body=text,
        odd=answer.odd,
        wrong=problem,
        done=done,
        plan=document.plan,
        is_empty=not document.plan.steps,
    )


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
