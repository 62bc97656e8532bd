"""Applies a revision that a model wrote: which parts can be taken, and which cannot."""

from collections.abc import Iterator, Sequence

from replan.base.texts.bounds import MODEL_PLAN
from replan.nodes.host.plan_bounds import bounded_plan
from replan.nodes.host.plan_texts import mistakes_in, plan_with_team_names
from replan.plan.applying import apply_valid
from replan.plan.changes import difference
from replan.plan.markdown.document import PlanDocument, too_large
from replan.plan.markdown.overlooked import ParseWarning
from replan.plan.merging import matched, merge_revision
from replan.plan.model import PlanStep, TaskPlan
from replan.prompts.replies.readings import Reading
from replan.specialists.services import Services
from replan.state.results import ActionType, FeedbackResult
from replan.state.team import refusal_text, refusals_of

SUGGESTION = "Plan updated from execution feedback."
MOST_NAMED = 20
"""Steps that a complaint names one by one."""


class Revision(Reading):
    """What a reply says that should be a revised plan."""

    plan: TaskPlan  # the plan after it; the old one if nothing could be taken
    withheld: tuple[ParseWarning, ...] = ()  # what it sets that only a person may set

    @property
    def complaint(self) -> str:
        then = "Write the whole revised plan again, fixed."
        return f"These changes cannot be taken:\n{self.wrong}\n{then}"


def refused_revision(old: TaskPlan, *problems: str) -> Revision:
    """A revision of which nothing can be taken."""
    done = "the plan stays as it is"
    return Revision(plan=old, wrong="\n".join(problems), done=done, is_empty=True)


def revision_of(
    old: TaskPlan,
    text: str,
    judged: FeedbackResult,
    services: Services,
    *,
    step_timeout: float,
) -> Revision:
    """Apply the valid changes of a model's revised plan document."""
    if beyond := too_large(text, MODEL_PLAN):
        return refused_revision(old, *map(str, beyond))
    document, before = (
        PlanDocument.recover(text, known=old.by_id),
        PlanDocument.recover(old.content),
    )
    if not document.plan.steps:
        return refused_revision(old, *map(str, document.mistakes))
    wanted = matched(old, document.plan)
    merged, unsaid = merge_revision(old, wanted)
    new, withheld = bounded_plan(
        plan_with_team_names(merged, services.team), services, step_timeout, old, text
    )
    plan, refusals = apply_valid(
        old,
        difference(old, new),
        at=services.clock(),
        by="model",
        description=judged.plan_update_suggestion or SUGGESTION,
        misread=set(_misread(document, wanted)),
    )
    old_mistakes = {_what(mistake) for mistake in mistakes_in(old.content, before, services.team)}
    mistakes = mistakes_in(text, document, services.team)
    problems = [mistake for mistake in mistakes if _what(mistake) not in old_mistakes]
    # Whoever names somebody whom the team does not have is asked once; then the step fails.
    fresh = [step for step in plan.steps if step not in old.steps]
    strangers = [refusal_text(refusal, document) for refusal in refusals_of(fresh, services.team)]
    struck = [STRUCK.format(step.id) for step in wanted.steps if _is_struck(step, old)]
    complaints = [*problems, *struck, *map(str, refusals), *strangers]
    if plan.version == old.version and not complaints and not unsaid and _wants_another(judged):
        complaints = [NOTHING_NEW, *map(str, withheld)]
    if unsaid:
        complaints.append(_complaint_about(unsaid))
    if plan.version == old.version:
        return refused_revision(old, *complaints).replace(withheld=withheld)
    done = "the valid part of the revision"
    return Revision(plan=plan, wrong="\n".join(complaints), done=done, withheld=withheld)


def begun_revision(
    old: TaskPlan, text: str, services: Services, *, step_timeout: float
) -> TaskPlan:
    """The plan after so much of a model's revision; the old one if something is wrong."""
    if PlanDocument.recover(text, known=old.by_id).mistakes:
        return old
    judged = FeedbackResult(feedback="", should_continue=True)
    return revision_of(old, text, judged, services, step_timeout=step_timeout).plan


NOTHING_NEW = (
    "Your plan is the plan as it stands, though a change was asked for. A failed step is done "
    "again only if its line changes."
)


STRUCK = (
    "Step {0} is struck through. Mark it `- [-] {0}. ...` if it is dropped, or write it plainly."
)


FREED = (
    "The revision lets step {0} begin without the result of {1}: its line says no longer that it "
    "waits."
)


def freed_steps(old: TaskPlan, new: TaskPlan) -> list[str]:
    """Tell which steps a revision wrote again without what they waited for."""
    waited = ((step, old.by_id[step.id]) for step in new.open_steps() if step.id in old.by_id)
    return [
        FREED.format(step.id, ", ".join(str(step_id) for step_id in before.dependencies))
        for step, before in waited
        if not step.dependencies and any(step_id in new.by_id for step_id in before.dependencies)
    ]


def _is_struck(step: PlanStep, old: TaskPlan) -> bool:
    text = step.description.strip()
    old_step = old.by_id.get(step.id)
    return text.startswith("~~") and text.endswith("~~") and not (old_step and old_step.is_finished)


def _what(problem: str) -> str:
    """A mistake of a document without its place, which a revision may move."""
    return problem.partition(": ")[2]


def _wants_another(judged: FeedbackResult) -> bool:
    """Whether a judgement of a model asks for a plan that is not the old one."""
    is_repeated = judged.suggested_action is ActionType.EXECUTE_STEP
    return judged.by == "model" and judged.plan_update_suggestion != "" and not is_repeated


_ORDER = ("unknown_dependency", "self_dependency", "cycle")


def _misread(document: PlanDocument, wanted: TaskPlan) -> Iterator[int]:
    """The steps whose order the document gives wrong; with the ids that they have in the plan."""
    begins = [
        (document.line_of(written.id) or 1, step.id)
        for written, step in zip(document.plan.steps, wanted.steps, strict=True)
    ]
    for mistake in document.mistakes:
        above = [each for each in begins if each[0] <= mistake.line]
        if mistake.code in _ORDER and above:
            yield max(above)[1]


def _complaint_about(unsaid: Sequence[PlanStep]) -> str:
    """Ask for the steps that a plan leaves out without a word."""
    named = [f"{step.id} ({step.description})" for step in unsaid[:MOST_NAMED]]
    more = len(unsaid) - len(named)
    listed = ", ".join([*named, *([f"{more} more"] if more else [])])
    first = unsaid[0]
    return (
        f"Your plan leaves out these steps: {listed}. Write them too, or mark each one that is "
        f"dropped: `- [-] {first.id}. {first.description}`."
    )
