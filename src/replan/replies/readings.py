"""The meaning of a reply: typed readings of it, and what to report if it is unreadable."""

import re
from collections.abc import Collection, Mapping
from typing import Literal

from replan.plan.markdown.document import PlanDocument, looks_like_plan
from replan.plan.model import PlanUpdateType, Value
from replan.replies.keys import COMPLEXITY, FEEDBACK, HOST, THINK, VERDICT
from replan.replies.reply import Reply, read_reply
from replan.replies.unreadable import (
    ANSWER_FORM,
    FEEDBACK_FORM,
    PLAN_FORM,
    THINK_FORM,
    Complaint,
    odd_in,
    wrong_in,
)
from replan.state.results import ActionType, TaskComplexity

_ANSWERING = (ActionType.DIRECT_ANSWER,)
_WORKING = (ActionType.CREATE_PLAN, ActionType.EXECUTE_STEP, ActionType.UPDATE_PLAN)
_NOTHING = frozenset(("none", "nothing", "no changes", "n/a", "无", "没有"))
"""Words that mean "nothing" where a wish could be."""
_LISTED = re.compile(r"^[ \t]*(?:[-*+#]|\d{1,9}[.)、])", re.MULTILINE)
_ITEM = r"[ \t]*(?:[-*+][ \t]+)?(?:\[[ ~xX!-]?\]|\d{1,9}[.)、])"
_CHOICE = re.compile(r"\bor\b|[|/]")

TAKEN = "the text of the reply is the answer"


Verdict = Literal["complete", "continue"]
"""The verdict of the host on a round: the work is done, or it continues."""


class ThinkReading(Value):
    complexity: TaskComplexity  # the label; without one, what score or body mean
    score: float | None = None  # the number from 0 to 1, if the model gave one
    reasoning: str = ""  # why
    next_action: ActionType | None = None  # what the host means to do; it may contradict the label
    body: str = ""  # the answer or the plan
    contradiction: str = ""  # what in the reply does not go together, or empty
    odd: str = ""  # what in the reply is not read, or empty


class FeedbackReading(Value):
    verdict: Verdict  # whether the work is done
    feedback: str = ""  # what the host says about the results
    # What the host would do next; it may contradict the verdict.
    suggested_action: ActionType | None = None
    update: str = ""  # what should change in the plan
    plan_update_type: PlanUpdateType | None = None  # the kind of change, if the host named one
    body: str = ""  # the final answer (complete) or the revised plan (continue)
    answer_step: str = ""  # in place of an answer, the step whose result it is, as it was written
    contradiction: str = ""  # what in the reply does not go together, or empty
    odd: str = ""  # what in the reply is not read, or empty


def read_think(
    text: str, team: Collection[str] = (), threshold: float = 0.5
) -> ThinkReading | Complaint[ThinkReading]:
    """Read a think reply.

    The label decides, or else a score. Anything else is asked for again, and so is a plan for the
    team below `simple`.
    """
    reply = read_reply(text, THINK)
    complexity = _complexity_of(reply.fields, threshold)
    is_labelled = "complexity" in reply.fields
    if reply.problem or complexity is None or not (is_labelled or _is_text(team, reply.body)):
        return _unreadable_thought(reply)
    reading = _think_reading(reply, complexity)
    if complexity is not TaskComplexity.SIMPLE or not _is_like_plan(team, reply.body):
        return reading
    wrong, done = "The reply says that the request is simple, but its body is a plan.", TAKEN
    if _is_plan_for(team, reply.body):
        reading, done = _think_reading(reply, TaskComplexity.MODERATE), "the plan is taken"
    return Complaint(wrong=wrong, form=ANSWER_FORM, reading=reading, done=done)


def _unreadable_thought(reply: Reply) -> Complaint[ThinkReading]:
    """Ask for the whole reply; if that is in vain, a plan is a plan and other text the answer."""
    label = reply.fields.get(COMPLEXITY.name)
    guess = TaskComplexity.MODERATE if looks_like_plan(reply.body) else TaskComplexity.SIMPLE
    reading = _think_reading(reply, TaskComplexity(label) if label else guess)
    is_answer = reading.complexity is TaskComplexity.SIMPLE
    is_echo = _CHOICE.search(reply.odd.get(COMPLEXITY.name, "")) is not None
    is_text = not (is_echo or reply.body.startswith('{"'))
    return Complaint(
        wrong=wrong_in(reply, COMPLEXITY),
        form=THINK_FORM,
        reading=reading if label or (reply.body and is_text) else None,
        done=f"the text of the reply is {'the answer' if is_answer else 'taken for a plan'}",
    )


def says_simple(fields: Mapping[str, str], threshold: float = 0.5) -> bool:
    """Whether a front matter alone, before its body is known, certainly announces an answer."""
    return _complexity_of(fields, threshold) is TaskComplexity.SIMPLE


def says_complete(fields: Mapping[str, str]) -> bool:
    """Whether a front matter alone, before its body is known, certainly announces an answer."""
    return fields.get("verdict") == "complete"


def _complexity_of(fields: Mapping[str, str], threshold: float) -> TaskComplexity | None:
    if "complexity" in fields:
        return TaskComplexity(fields["complexity"])
    if "score" not in fields:
        return None
    is_high = float(fields["score"]) >= threshold
    return TaskComplexity.COMPLEX if is_high else TaskComplexity.SIMPLE


def _is_plan_for(team: Collection[str], body: str) -> bool:
    """Whether a text is a plan whose steps all name members of a team: no answer looks like it."""
    if not _mentions(team, body):
        return False
    steps = PlanDocument.recover(body).plan.steps if looks_like_plan(body) else ()
    return bool(steps) and all(step.assigned_to in team for step in steps)


def _is_like_plan(team: Collection[str], body: str) -> bool:
    """Whether a text has steps of a plan: they name members of a team, or wait for each other."""
    if _mentions(team, body):
        names = "|".join(map(re.escape, team))
        return len(re.findall(rf"^{_ITEM}[^\n]*@(?:{names})\b", body, re.MULTILINE)) > 1
    return looks_like_plan(body) and any(
        step.awaits for step in PlanDocument.recover(body).plan.steps
    )


def _is_text(team: Collection[str], body: str) -> bool:
    """Whether nothing in a body may be of a plan."""
    return not (_LISTED.search(body) or _mentions(team, body))


def _mentions(team: Collection[str], body: str) -> bool:
    return any(f"@{name}" in body for name in team)


def _think_reading(reply: Reply, complexity: TaskComplexity) -> ThinkReading:
    fields, is_simple = reply.fields, complexity is TaskComplexity.SIMPLE
    action = _action_in(fields, "next_action")
    return ThinkReading(
        complexity=complexity,
        score=float(fields["score"]) if "score" in fields else None,
        reasoning=fields.get("reasoning", ""),
        next_action=action or (ActionType.DIRECT_ANSWER if is_simple else ActionType.CREATE_PLAN),
        body=reply.body,
        contradiction=f"complexity is {complexity}, next_action is {action}"
        if action in (_WORKING if is_simple else _ANSWERING)
        else "",
        odd=odd_in(reply),
    )


def read_feedback(
    text: str, team: Collection[str] = (), *, holds_plan: bool = True
) -> FeedbackReading | Complaint[FeedbackReading]:
    """Read a feedback reply; a change of the plan that is only spoken of is asked for again.

    Args:
        text: The reply.
        team: The names of the specialists: a plan for them is no answer.
        holds_plan: Whether it has to have the revised plan that it asks for.
    """
    reply = read_reply(text, FEEDBACK)
    if reply.problem or "verdict" not in reply.fields:
        # What it holds may be talk as well as the answer: another call makes that.
        return Complaint(wrong=wrong_in(reply, VERDICT), form=FEEDBACK_FORM)
    reading = _feedback_reading(reply)
    if reading.verdict == "complete" and _is_plan_for(team, reading.body):
        wrong = "The reply says that the work is complete, but its body is a plan."
        empty = reading.replace(body="")
        done = "another call writes the answer"
        return Complaint(wrong=wrong, form=FEEDBACK_FORM, reading=empty, done=done)
    is_spoken_of = reading.update or reading.suggested_action is ActionType.UPDATE_PLAN
    if reading.verdict == "complete" or reading.body or not (holds_plan and is_spoken_of):
        return reading
    wrong = "The reply asks for a change of the plan, but it holds no plan."
    return Complaint(wrong=wrong, form=PLAN_FORM, reading=reading, done="the plan stays as it is")


def _feedback_reading(reply: Reply) -> FeedbackReading:
    verdict: Verdict = "complete" if says_complete(reply.fields) else "continue"
    body = reply.body
    update = _unless_nothing(reply.fields.get("update", ""))
    if verdict == "continue" and not _LISTED.search(body):  # no plan, but a suggestion in prose
        update = "\n\n".join(part for part in (update, _unless_nothing(body)) if part)
        body = ""
    action, next_action = _action_in(reply.fields, "suggested_action"), None
    if verdict == "continue":
        next_action = ActionType.UPDATE_PLAN if update or body else ActionType.EXECUTE_STEP
    kind = reply.fields.get("plan_update_type")
    return FeedbackReading(
        verdict=verdict,
        feedback=reply.fields.get("feedback", ""),
        suggested_action=action or next_action,
        update=update,
        plan_update_type=PlanUpdateType(kind) if kind else None,
        body=body,
        answer_step=_unless_nothing(reply.fields.get("answer_step", "")),
        contradiction=f"verdict is {verdict}, suggested_action is {action}"
        if action in (_ANSWERING if verdict == "continue" else _WORKING)
        else "",
        odd=odd_in(reply),
    )


def _action_in(fields: Mapping[str, str], name: str) -> ActionType | None:
    return ActionType(fields[name]) if name in fields else None


def read_answer(text: str) -> str:
    """Return the text of a reply that should be nothing else: an answer, or a plan."""
    return read_reply(text, HOST).body


def _unless_nothing(text: str) -> str:
    return "" if text.strip(" .()[]*_`-\n").lower() in (*_NOTHING, "") else text
