"""What a reply means, or what its model is asked, and what applies if that is in vain."""

import re
from collections.abc import Collection, Mapping
from typing import Literal, TypeVar

from pydantic import Field

from replan.base.values import Value
from replan.plan.markdown.document import PlanDocument, looks_like_plan
from replan.plan.model import PlanUpdateType
from replan.prompts.replies.keys import (
    ANSWER_STEP,
    COMPLEXITY,
    FEEDBACK,
    HOST,
    SPECIALIST,
    THINK,
    VERDICT,
    Key,
)
from replan.prompts.replies.reply import Reply, read_reply
from replan.prompts.replies.wrapping import Fence, behind_thoughts, fence_around
from replan.state.results import ActionType, ExecutionStatus, TaskComplexity

THINK_FORM = """\
Write the whole reply again in this form, with nothing before it:
---
complexity: simple
reasoning: One sentence.
---
The answer. For `moderate` or `complex`: the plan, each step a line such as `- [ ] 1. ... @name`."""
FEEDBACK_FORM = """\
Write the whole reply again in this form, with nothing before it:
---
verdict: complete
feedback: One sentence.
---
The final answer. For `verdict: continue`: the revised plan, or nothing if the old one stays."""
PLAN_FORM = """\
Write the whole reply again: the front matter, then the whole plan, each step a line such as
- [ ] 1. What is to be done @name (after 2)"""
ANSWER_FORM = """\
Write the whole reply again: the answer below `complexity: simple`, or the plan below
`complexity: complex`."""
SHORTER = "Write it again, shorter, so that all of it fits."

_ANSWERING = (ActionType.DIRECT_ANSWER,)
_WORKING = (ActionType.CREATE_PLAN, ActionType.EXECUTE_STEP, ActionType.UPDATE_PLAN)
_CONFIDENCE = {ExecutionStatus.SUCCESS: 1, ExecutionStatus.PARTIAL: 0.5, ExecutionStatus.FAILED: 0}
_OF_SPECIALISTS = frozenset(key.name for key in SPECIALIST.values())
_NOTHING = frozenset(("", "none", "nothing", "no changes", "n/a", "无", "没有"))
"""Words that mean "nothing" where a wish could be."""
_LISTED = re.compile(r"^[ \t]*(?:[-*+#]|\d{1,9}[.)、])", re.MULTILINE)
_ITEM = r"[ \t]*(?:[-*+][ \t]+)?(?:\[[ ~xX!-]?\]|\d{1,9}[.)、])"
_CHOICE = re.compile(r"\bor\b|[|/]")
_MISPLACED = re.compile(
    r"(?:[^\n]*\n){1,3}[ \t]*(?:-{3,}|`{3,}\w*)[ \t]*\n"
    r"([ \t]*status:[ \t]*(?:failed|partial)[ \t]*)\n",
    re.IGNORECASE,
)
_LONGEST_VALUE = 60

Verdict = Literal["complete", "continue"]
"""The verdict of the host on a round: the work is done, or it continues."""


class Reading(Value):
    """What a reply says; one that is `wrong` is asked for again."""

    body: str = ""  # the text below the front matter
    raw: str = ""  # of an answer, the whole reply, which may be a value of a program
    odd: str = ""  # what in the reply is not read, or empty
    wrong: str = ""  # what is wrong with the reply, for people and for the model; or empty
    form: str = ""  # how the model is to write it instead
    done: str = ""  # what follows if the second reply is not better, for people
    counts: bool = True  # whether the reading is used then
    is_empty: bool = False  # whether a first reply that is wrong is better than this one

    @property
    def complaint(self) -> str:
        """What the model is shown of a reply that is wrong."""
        return f"{self.wrong} {self.form}"


class HostReading(Reading):
    answer_step: str = ""  # the step whose result is, or will be, the answer, as it was written
    contradiction: str = ""  # what in the reply does not go together, or empty


class ThinkReading(HostReading):
    # The label; without one, what score or body mean.
    complexity: TaskComplexity = TaskComplexity.SIMPLE
    score: float | None = None  # the number from 0 to 1, if the model gave one
    reasoning: str = ""  # why
    next_action: ActionType | None = None  # what the host means to do; it may contradict the label

    @property
    def is_plan(self) -> bool:
        return self.complexity is not TaskComplexity.SIMPLE


class FeedbackReading(HostReading):
    verdict: Verdict = "complete"  # whether the work is done
    feedback: str = ""  # what the host says about the results
    # What the host would do next; it may contradict the verdict.
    suggested_action: ActionType | None = None
    update: str = ""  # what should change in the plan
    plan_update_type: PlanUpdateType | None = None  # the kind of change, if the host named one

    @property
    def is_plan(self) -> bool:
        return self.verdict == "continue"


R = TypeVar("R", ThinkReading, FeedbackReading)


class SpecialistReading(Reading):
    # How the work ended; success where nothing is said.
    status: ExecutionStatus = ExecutionStatus.SUCCESS
    confidence: float = Field(default=1.0, ge=0, le=1)
    replan_needed: bool = False  # asks the host to revise the plan
    retry: bool = True  # whether another attempt can help


def read_answer(text: str) -> Reading:
    """Read a reply that should be nothing but its text: an answer, or a plan."""
    reply = read_reply(text, HOST)
    return Reading(body=reply.body, raw=text, odd=reply.unread)


def read_think(text: str, team: Collection[str] = (), threshold: float = 0.5) -> ThinkReading:
    """Read a think reply.

    The label decides, or else a score. Anything else is asked for again, and so is a plan for the
    team below `simple`.
    """
    reply = read_reply(text, THINK)
    complexity = _complexity_of(reply.fields, threshold)
    is_labelled = COMPLEXITY.name in reply.fields
    if reply.problem or complexity is None or not (is_labelled or _is_text(team, reply.body)):
        return _unreadable_thought(reply)
    reading = _think_reading(reply, complexity)
    if reading.is_plan or not _is_like_plan(team, reply.body):
        return reading
    wrong = "The reply says that the request is simple, but its body is a plan."
    done = "the text of the reply is the answer"
    if _is_plan_for(team, reply.body):
        reading, done = _think_reading(reply, TaskComplexity.MODERATE), "the plan is taken"
    return reading.replace(wrong=wrong, form=ANSWER_FORM, done=done)


def _unreadable_thought(reply: Reply) -> ThinkReading:
    """Ask for the whole reply; if that is in vain, a plan is a plan and other text the answer."""
    label = reply.fields.get(COMPLEXITY.name)
    guess = TaskComplexity.MODERATE if looks_like_plan(reply.body) else TaskComplexity.SIMPLE
    reading = _think_reading(reply, TaskComplexity(label) if label else guess)
    is_echo = _CHOICE.search(reply.odd.get(COMPLEXITY.name, "")) is not None
    wrong = _problem_of(reply, COMPLEXITY)
    if not label and (not reply.body or is_echo or reply.body.startswith('{"')):
        return no_thought(wrong)
    done = f"the text of the reply is {'taken for a plan' if reading.is_plan else 'the answer'}"
    return reading.replace(wrong=wrong, form=THINK_FORM, done=done)


def no_thought(wrong: str) -> ThinkReading:
    """The reading of a reply to `think` of which nothing can be used."""
    done = "the request counts as simple"
    return ThinkReading(wrong=wrong, form=THINK_FORM, done=done, counts=False, is_empty=True)


def says_simple(fields: Mapping[str, str], threshold: float = 0.5) -> bool:
    """Whether a front matter alone, before its body is known, certainly announces an answer."""
    return _complexity_of(fields, threshold) is TaskComplexity.SIMPLE


def says_complete(fields: Mapping[str, str]) -> bool:
    """Whether a front matter alone, before its body is known, certainly announces an answer."""
    return fields.get(VERDICT.name) == "complete"


def _complexity_of(fields: Mapping[str, str], threshold: float) -> TaskComplexity | None:
    if COMPLEXITY.name in fields:
        return TaskComplexity(fields[COMPLEXITY.name])
    if "score" not in fields:
        return None
    is_high = float(fields["score"]) >= threshold
    return TaskComplexity.COMPLEX if is_high else TaskComplexity.SIMPLE


def _think_reading(reply: Reply, complexity: TaskComplexity) -> ThinkReading:
    fields, is_simple = reply.fields, complexity is TaskComplexity.SIMPLE
    action = _action_in(fields, "next_action")
    is_other = action in (_WORKING if is_simple else _ANSWERING)
    return ThinkReading(
        complexity=complexity,
        score=float(fields["score"]) if "score" in fields else None,
        reasoning=fields.get("reasoning", ""),
        next_action=action or (ActionType.DIRECT_ANSWER if is_simple else ActionType.CREATE_PLAN),
        answer_step="" if is_simple else fields.get(ANSWER_STEP.name, ""),
        body=reply.body,
        contradiction=f"complexity is {complexity}, next_action is {action}" if is_other else "",
        odd=reply.unread,
    )


def _is_plan_for(team: Collection[str], body: str) -> bool:
    """Whether a text is a plan whose steps all name members of a team: no answer looks like it."""
    is_plan = _mentions(team, body) and looks_like_plan(body)
    steps = PlanDocument.recover(body).plan.steps if is_plan else ()
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


def read_feedback(
    text: str, team: Collection[str] = (), *, holds_plan: bool = True
) -> FeedbackReading:
    """Read a feedback reply; a change of the plan that is only spoken of is asked for again.

    Args:
        text: The reply.
        team: The names of the specialists: a plan for them is no answer.
        holds_plan: Whether it has to have the revised plan that it asks for.
    """
    reply = read_reply(text, FEEDBACK)
    if reply.problem or VERDICT.name not in reply.fields:
        # What it holds may be talk as well as the answer: another call makes that.
        return no_judgement(_problem_of(reply, VERDICT))
    reading = _feedback_reading(reply)
    if not reading.is_plan and _is_plan_for(team, reading.body):
        wrong = "The reply says that the work is complete, but its body is a plan."
        done = "another call writes the answer"
        return reading.replace(body="", wrong=wrong, form=FEEDBACK_FORM, done=done)
    is_spoken_of = reading.update or reading.suggested_action is ActionType.UPDATE_PLAN
    if not reading.is_plan or reading.body or not (holds_plan and is_spoken_of):
        return reading
    wrong = "The reply asks for a change of the plan, but it holds no plan."
    return reading.replace(wrong=wrong, form=PLAN_FORM, done="the plan stays as it is")


def no_judgement(wrong: str) -> FeedbackReading:
    """The reading of a reply to `feedback` of which nothing can be used."""
    done = "the judgement by the status of the steps"
    return FeedbackReading(wrong=wrong, form=FEEDBACK_FORM, done=done, counts=False, is_empty=True)


def _feedback_reading(reply: Reply) -> FeedbackReading:
    verdict: Verdict = "complete" if says_complete(reply.fields) else "continue"
    body, update = reply.body, _unless_nothing(reply.fields.get("update", ""))
    if verdict == "continue" and not _LISTED.search(body):  # no plan, but a suggestion in prose
        update = "\n\n".join(part for part in (update, _unless_nothing(body)) if part)
        body = ""
    action, next_action = _action_in(reply.fields, "suggested_action"), None
    if verdict == "continue":
        next_action = ActionType.UPDATE_PLAN if update or body else ActionType.EXECUTE_STEP
    is_other = action in (_ANSWERING if verdict == "continue" else _WORKING)
    kind = reply.fields.get("plan_update_type")
    return FeedbackReading(
        verdict=verdict,
        feedback=reply.fields.get("feedback", ""),
        suggested_action=action or next_action,
        update=update,
        plan_update_type=PlanUpdateType(kind) if kind else None,
        body=body,
        answer_step=_unless_nothing(reply.fields.get("answer_step", "")),
        contradiction=f"verdict is {verdict}, suggested_action is {action}" if is_other else "",
        odd=reply.unread,
    )


def _action_in(fields: Mapping[str, str], name: str) -> ActionType | None:
    return ActionType(fields[name]) if name in fields else None


def _unless_nothing(text: str) -> str:
    return "" if text.strip(" .()[]*_`-\n").lower() in _NOTHING else text


def unless_cut(reading: R, why: str, done: str) -> R:
    """Return the reading of a reply that was cut off: a plan without its end is asked for again.

    Args:
        reading: What the reply says; an answer counts as it is.
        why: Why the reply has no end; empty if it has one.
        done: What applies in place of the plan if the second reply has no end either.
    """
    if why and reading.is_plan and reading.counts:
        form = f"{SHORTER} {PLAN_FORM}"
        return reading.replace(body="", wrong=why, form=form, done=done)
    return reading.replace(wrong=f"{why} {reading.wrong}") if why and reading.wrong else reading


def read_specialist(text: str) -> SpecialistReading:
    """Read a specialist's text, which is all body unless it begins with a front matter of ours.

    A report may begin with a line such as `status: on track` or with its own front matter: values
    that do not fit make it text. A text without any result is not a success.
    """
    reply = read_reply(text, SPECIALIST)
    fields = reply.fields
    status = ExecutionStatus(fields.get("status", ExecutionStatus.SUCCESS))
    is_success = status is ExecutionStatus.SUCCESS
    is_misfit = not _OF_SPECIALISTS.isdisjoint(reply.odd)
    if not fields or _is_data(reply) or (is_success and (reply.problem or is_misfit)):
        body = behind_thoughts(reply.whole)
        status = ExecutionStatus.SUCCESS if body else ExecutionStatus.FAILED
        # A reply that says so only below its first lines may have failed, too.
        said = _MISPLACED.match(body)
        wrong = f"`{said[1].strip()}` is not at the beginning of the reply." if said else ""
        return SpecialistReading(status=status, body=body, wrong=wrong)
    # What the front matter says of the result comes before it; without either, all that there is.
    parts = [part for part in (fields.get("reason", ""), reply.body) if part]
    return SpecialistReading(
        status=status,
        confidence=float(fields.get("confidence", _CONFIDENCE[status])),
        replan_needed=fields.get("replan_needed") == "yes",
        retry=fields.get("retry") != "no",
        body="\n\n".join(parts) or "\n".join(map(": ".join, reply.odd.items())),
        wrong=reply.problem,
        odd=reply.unread,
    )


def _is_data(reply: Reply) -> bool:
    """Whether a report is a JSON object that may be the data: one without a result, or with more.

    What says how the work went stands beside a result, and nothing else does.
    """
    inner = (fence_around(reply.whole) or Fence("", reply.whole)).inner
    return inner.lstrip().startswith("{") and bool(reply.odd or not reply.body)


def _problem_of(reply: Reply, key: Key) -> str:
    """Describe what was read of a reply, and why that does not say what it means."""
    if reply.problem:
        return reply.problem
    if (value := reply.odd.get(key.name)) is not None:
        value = value.partition("\n")[0][:_LONGEST_VALUE]
        return f"`{key.name}: {value}` is not one of {key.labels}."
    if found := [*reply.fields, *reply.odd]:
        names = ", ".join(f"`{name}`" for name in found)
        return f"The front matter has {names}, but no `{key.name}`, which is one of {key.labels}."
    why = "does not begin with its front matter" if reply.body else "is empty"
    return f"The reply {why}, so it has no `{key.name}`."
