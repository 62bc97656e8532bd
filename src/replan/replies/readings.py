"""The meaning of a reply: typed readings of it, and what to report if it is unreadable."""

from collections.abc import Collection, Mapping

from replan.plan.model import PlanUpdateType, Value
from replan.replies.reply import FEEDBACK_KEYS, HOST_KEYS, THINK_KEYS, Reply, read_reply
from replan.replies.unreadable import (
    ANSWER_FORM,
    FEEDBACK_FORM,
    PLAN_FORM,
    THINK_FORM,
    Complaint,
    wrong_in,
)
from replan.replies.vocabulary import words
from replan.replies.vocabulary.labels import (
    Verdict,
    action_of,
    complexity_of,
    is_choice,
    number_of,
    update_type_of,
    verdict_of,
)
from replan.replies.vocabulary.naming import Names
from replan.replies.written_plans.finding import FoundPlan, find_plan, is_partial, problems_of
from replan.state.results import ActionType, TaskComplexity

_ANSWERING = (ActionType.DIRECT_ANSWER,)
_WORKING = (ActionType.CREATE_PLAN, ActionType.EXECUTE_STEP, ActionType.UPDATE_PLAN)
_NOTHING = frozenset(words("others", "nothing"))
"""Words that mean "nothing" where a wish could be."""


class ThinkReading(Value):
    complexity: TaskComplexity  # the label; without one, what score or body mean
    score: float | None = None  # the number from 0 to 1, if the model gave one
    reasoning: str = ""  # why
    next_action: ActionType | None = None  # what the host means to do; it may contradict the label
    body: str = ""  # the answer or the plan
    contradiction: str = ""  # what in the reply does not go together, or empty


class FeedbackReading(Value):
    verdict: Verdict  # whether the work is done
    feedback: str = ""  # what the host says about the results
    # What the host would do next; it may contradict the verdict.
    suggested_action: ActionType | None = None
    update: str = ""  # what should change in the plan
    plan_update_type: PlanUpdateType | None = None  # the kind of change, if the host named one
    body: str = ""  # the final answer (complete) or the revised plan (continue)
    is_partial: bool = False  # whether the revised plan says itself that it leaves steps out
    contradiction: str = ""  # what in the reply does not go together, or empty


def read_think(
    text: str, team: Collection[str] = (), threshold: float = 0.5
) -> ThinkReading | Complaint[ThinkReading]:
    """Read a think reply.

    The label decides. Where it is missing or unknown, a score does; without one, a body with steps
    of a plan is a plan. Anything else is asked for again, and so is a plan below `simple`.
    """
    reply = read_reply(text, THINK_KEYS)
    written = reply.fields.get("complexity", "")
    score = number_of(reply.fields.get("score", "") or written)
    label = complexity_of(written)
    plan = find_plan(reply.body, team, expected=label not in (None, "simple"), is_cut=reply.is_cut)
    complexity = label or _without_label(score, threshold, has_plan=plan is not None)
    if complexity is TaskComplexity.SIMPLE and plan is not None and plan.is_certain:
        return _plan_below_simple(reply, plan, score)
    reading = _think_reading(reply, complexity or TaskComplexity.SIMPLE, plan, score)
    doubt = plan.doubt if plan else ""
    if complexity and not doubt:
        return reading
    if complexity:
        return Complaint[ThinkReading](
            wrong=f"{UNSURE} {doubt}", form=PLAN_FORM, reading=reading, done=_AS_READ
        )
    is_echo = is_choice(written)
    return Complaint[ThinkReading](
        wrong=wrong_in(reply, "complexity", "simple, moderate, complex"),
        form=THINK_FORM,
        reading=reading if reading.body and not is_echo else None,
        done="the text of the reply is the answer",
    )


def _plan_below_simple(
    reply: Reply, plan: FoundPlan, score: float | None
) -> ThinkReading | Complaint[ThinkReading]:
    """Read a plan for the team even if the label says there is none: no answer looks like this."""
    reading = _think_reading(reply, TaskComplexity.MODERATE, plan, score)
    if action_of(reply.fields.get("next_action", "")) is ActionType.CREATE_PLAN:
        return reading
    wrong = "The reply says that the request is simple, but its body is a plan."
    return Complaint[ThinkReading](wrong=wrong, form=ANSWER_FORM, reading=reading, done=_AS_READ)


UNSURE = "The plan cannot be read with certainty."
_AS_READ = "the plan as it could be read"


def says_simple(fields: Mapping[str, str], threshold: float = 0.5) -> bool:
    """Whether a front matter alone, before its body is known, certainly announces an answer."""
    written = fields.get("complexity", "")
    label, score = complexity_of(written), number_of(fields.get("score", "") or written)
    found = label or _without_label(score, threshold, has_plan=False)
    return found is TaskComplexity.SIMPLE


def says_complete(fields: Mapping[str, str]) -> bool:
    """Whether a front matter alone, before its body is known, certainly announces an answer."""
    return verdict_of(fields.get("verdict", "")) == "complete"


def _without_label(
    score: float | None, threshold: float, *, has_plan: bool
) -> TaskComplexity | None:
    if score is not None:
        return TaskComplexity.COMPLEX if score >= threshold else TaskComplexity.SIMPLE
    return TaskComplexity.COMPLEX if has_plan else None


def _think_reading(
    reply: Reply, complexity: TaskComplexity, plan: FoundPlan | None, score: float | None
) -> ThinkReading:
    is_simple = complexity is TaskComplexity.SIMPLE
    action = action_of(reply.fields.get("next_action", ""))
    return ThinkReading(
        complexity=complexity,
        score=score,
        reasoning=reply.fields.get("reasoning", ""),
        next_action=action,
        body=reply.body if is_simple or plan is None else plan.text,
        contradiction=f"complexity is {complexity}, next_action is {action}"
        if action in (_WORKING if is_simple else _ANSWERING)
        else "",
    )


def read_feedback(
    text: str, team: Collection[str] = (), *, holds_plan: bool = True
) -> FeedbackReading | Complaint[FeedbackReading]:
    """Read a feedback reply.

    Where the verdict is missing or unknown, a body with steps of a plan means continue. Anything
    else is asked for again, and so is a change of the plan that is only spoken of.
    """
    reply = read_reply(text, FEEDBACK_KEYS)
    written = reply.fields.get("verdict", "")
    verdict = verdict_of(written)
    plan = None
    if verdict != "complete":
        from replan.replies.dropping import crossed_out  # noqa: PLC0415 - only revisions need it

        body, is_announced = crossed_out(reply.body), verdict == "continue"
        plan = find_plan(body, team, expected=is_announced, is_cut=reply.is_cut)
    if verdict is None and plan is not None:
        verdict = "continue"
    if verdict is None:
        # What it holds may be talk as well as the answer: another call makes that.
        wrong = wrong_in(reply, "verdict", "complete, continue")
        return Complaint[FeedbackReading](wrong=wrong, form=FEEDBACK_FORM)
    reading = _feedback_reading(reply, verdict, plan)
    wrong = _wrong_revision(reading, plan) if verdict == "continue" and holds_plan else ""
    if not wrong:
        return reading
    done = "the revised plan as it could be read" if plan else "the plan stays as it is"
    return Complaint[FeedbackReading](wrong=wrong, form=PLAN_FORM, reading=reading, done=done)


def _wrong_revision(reading: FeedbackReading, plan: FoundPlan | None) -> str:
    wants_other = reading.update or reading.suggested_action is ActionType.UPDATE_PLAN
    if plan is None and wants_other:
        return "The reply asks for a change of the plan, but it holds no plan."
    if plan is not None and plan.doubt:
        return f"{UNSURE} {plan.doubt}"
    if plan is not None and reading.is_partial:
        return "The revised plan leaves steps out."
    return ""


def _feedback_reading(reply: Reply, verdict: Verdict, plan: FoundPlan | None) -> FeedbackReading:
    update = _unless_nothing(reply.fields.get("update", ""))
    body = reply.body
    if verdict == "continue":
        body = plan.text if plan else ""
        if plan is None:  # a suggestion in prose
            update = "\n\n".join(part for part in (update, _unless_nothing(reply.body)) if part)
    action = action_of(reply.fields.get("suggested_action", ""))
    return FeedbackReading(
        verdict=verdict,
        feedback=reply.fields.get("feedback", ""),
        suggested_action=action,
        update=update,
        plan_update_type=update_type_of(reply.fields.get("plan_update_type", "")),
        body=body,
        is_partial=plan is not None and is_partial(reply.body),
        contradiction=f"verdict is {verdict}, suggested_action is {action}"
        if action in (_ANSWERING if verdict == "continue" else _WORKING)
        else "",
    )


def read_plan(text: str, team: Collection[str] = ()) -> FoundPlan:
    """Return the plan in a reply that should be nothing else; without steps, the reply as it is."""
    reply = read_reply(text, HOST_KEYS)
    plan = find_plan(reply.body, team, expected=True, is_cut=reply.is_cut)
    return plan or FoundPlan(reply.body, problems_of(reply.body, Names(team)), is_certain=False)


def read_answer(text: str) -> str:
    """Return the answer of a reply that should be nothing else, without its thoughts and marks."""
    is_framed = text.lstrip().startswith(("-", "<", "[", "◁"))
    return read_reply(text, HOST_KEYS if is_framed else ()).body


def _unless_nothing(text: str) -> str:
    words_in = text.strip(" .()[]*_`-\n").lower()
    return "" if not words_in or words_in in _NOTHING else text
