"""Turns a model's text into a plan: read, with what is wrong, and recovered."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import takewhile

from replan.base.texts.bounds import MODEL_PLAN
from replan.models.reply_end import WHOLE, ReplyEnd
from replan.nodes.host.plan_mistakes import mistakes_in
from replan.plan.markdown.document import PlanDocument, refresh_content, too_large
from replan.plan.markdown.rendering import render
from replan.plan.merging import as_new_plan, without_steps
from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.prompts.replies.readings import SHORTER, Reading, read_answer
from replan.specialists.services import Services
from replan.state.team import SpecialistCard, find_specialist, refusal_text, refusals_of

LONGEST_LINE = 300
"""Characters of a request that fit into the line of a step."""


_MOST_MISFITS = 20
"""Steps with unreadable dependencies or conditions; with more, nothing of a plan is taken."""


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
        refused = (refusal_text(refusal, document) for refusal in refusals_of(steps, team))
        problem = "\n".join([*mistakes_in(text, document, team), *refused])
    plan = _held_back(document) if problem else document.plan
    return PlanReading(
        body=text,
        odd=answer.odd,
        wrong=problem,
        done="the steps that could be read" if plan.steps else "a plan of one step",
        plan=plan,
        is_empty=not plan.steps,
    )


def _held_back(document: PlanDocument) -> TaskPlan:
    """The steps that could be read, changed so that none begins earlier than its line may mean.

    A step with a dependency that could not be read waits for all steps above it. A step with a
    condition that could not be read is left out.
    """
    misfits, steps = document.misfits, {**document.plan.by_id}
    if len(misfits) > _MOST_MISFITS:
        return TaskPlan()
    unconditional = set[int]()
    for written in misfits:
        step, behind = steps[written.id], _waiting_for(written.id, steps)
        above = takewhile(lambda each, end=step.id: each != end, steps)
        waits = (*step.dependencies, *(step_id for step_id in above if step_id not in behind))
        steps[step.id] = step.replace(dependencies=tuple(dict.fromkeys(waits)))
        if written.condition != step.condition:
            unconditional.add(step.id)
    changed = tuple(steps.values())
    if changed == document.plan.steps and not unconditional:
        return document.plan
    kept = without_steps(document.plan.replace(steps=changed), unconditional)
    return with_fitting_document(kept)


def _waiting_for(step_id: int, steps: Mapping[int, PlanStep]) -> set[int]:
    """The steps that wait for a step, directly or for one that does."""
    waiting = defaultdict[int, list[int]](list)
    for step in steps.values():
        for number in step.awaits:
            waiting[number].append(step.id)
    found, left = set[int](), [step_id]
    while left:
        new = set(waiting[left.pop()]) - found
        found |= new
        left += new
    return found


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
