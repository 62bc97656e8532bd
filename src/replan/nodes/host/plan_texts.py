"""Turns a model's text into a plan: read, recovered, and what its model is told of its mistakes."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

from replan.base.texts.bounds import MODEL_PLAN
from replan.models.reply_end import WHOLE, ReplyEnd
from replan.plan.changes import title_key
from replan.plan.markdown.document import PlanDocument, refresh_content, too_large
from replan.plan.markdown.overlooked import overlooked
from replan.plan.markdown.reading import read_document
from replan.plan.markdown.rendering import render
from replan.plan.merging import as_new_plan, without_steps
from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.prompts.replies.readings import SHORTER, Reading, read_answer
from replan.specialists.services import Services
from replan.state.team import SpecialistCard, find_specialist, refusal_text, refusals_of


def mistakes_in(text: str, document: PlanDocument, team: Sequence[SpecialistCard]) -> Iterator[str]:
    """What a model is told of its plan: mistakes, and what may be meant for a part of it."""
    if beyond := too_large(text, MODEL_PLAN):
        yield from map(str, beyond)
        return
    yield from map(str, document.mistakes)
    yield from (str(warning) for warning in overlooked(text) if warning.kind in _ASKED)
    yield from _in_blocks(text)
    yield from _without_names(document, team)
    titles = Counter(map(title_key, document.plan.steps))
    if titles and min(titles.values()) > 1:
        yield "plan: it has each step twice"


def _in_blocks(text: str) -> Iterator[str]:
    """What is odd in the lines of a plan: steps without a number, and text that is not indented."""
    reading = read_document(text)
    heads = {start + at for start, block in reading.placed() for at in range(block.said.head)}
    for at, line in enumerate(reading.lines):
        is_detail = line.text.startswith(("  ", "\t"))
        sign = _IN_DETAIL if is_detail else _IN_STEP
        if at not in heads and sign.search(line.text[:_REACH]):
            yield f"line {at + 1}: '{line.text.strip()[:_LONGEST_SHOWN]}' is read as text, no step"
    has_numbers = any(block.explicit for block in reading.blocks)
    for at, block in reading.placed():
        if has_numbers and not block.explicit:
            yield f"line {at + 1}: '{block.step.description[:_LONGEST_SHOWN]}' has no number"
        for place, line in enumerate(block.lines[block.said.head :], at + block.said.head + 1):
            if line.text.strip() and not line.text.startswith(("  ", "\t")):
                shown = line.text.strip()[:_LONGEST_SHOWN]
                yield f"line {place}: '{shown}' is read as a brief; indent it"


def _without_names(document: PlanDocument, team: Sequence[SpecialistCard]) -> Iterator[str]:
    """The steps that miss the name of a specialist."""
    steps = document.plan.steps
    has_names = any(step.specialists for step in steps)
    names = {card.name.casefold() for card in team}
    for step in steps:
        # A name on a line of its own was broken off the step's line.
        words = {*_WORD.findall(step.description.casefold())}
        words |= {line.strip(" \t@*`") for line in step.brief.casefold().split("\n")}
        is_named = step.specialists or step.is_finished
        if not is_named and (has_names or not names.isdisjoint(words)):
            yield f"line {document.line_of(step.id)}: step {step.id} says nobody; write @name"


_ASKED = ("dependency", "name", "number")
_LONGEST_SHOWN, _REACH = 60, 2_000
_IN_DETAIL = re.compile(
    r"[(\uff08]after \d|\A\s*+(?:after \d|\[[ ~xX!-]?\]\s)|(?<=\S)- \[ \]|(?<=\S )- \[ \]"
)
_IN_STEP = re.compile(r"[(\uff08]after \d|\[ \]|(?<!\w)@\w")
_WORD = re.compile(r"[a-z0-9_]+(?:[.-]+[a-z0-9_]+)*+|[^\W_a-z0-9]+")


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
