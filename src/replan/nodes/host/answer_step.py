"""The answer by reference: the host names the step whose result is the answer, word for word.

What a specialist has written is not written again by the host: that takes no tokens, and no long
result is cut short on its way.
"""

import re
from collections.abc import Sequence

from replan.base.secrets.known import KNOWN
from replan.models.reply_end import ReplyEnd
from replan.prompts.replies.readings import FeedbackReading
from replan.prompts.replies.shape import MisshapenError, Shape
from replan.state.enhanced import EnhancedState, plan_of
from replan.state.results import SpecialistResult, newest_results
from replan.state.rules import can_be_answer, went_as_planned

ANSWER_STEP_FORM = """\
Write the whole reply again: either `answer_step` has the number of one step whose result is the
whole answer, and nothing stands below the front matter; or the answer stands there, and there is no
`answer_step`."""

_LONGEST = 60  # characters of a number
_NUMBER = re.compile(r"(?:step|步骤)?#?(\d{1,6})\.?", re.IGNORECASE)


def checked_reference(
    reading: FeedbackReading,
    state: EnhancedState,
    shape: Shape | None,
    end: ReplyEnd,
) -> FeedbackReading:
    """Return a judgement whose `answer_step` can be the answer; others are asked for again.

    Args:
        reading: The judgement.
        state: The state, with whole results.
        shape: What the answer must be, if a program reads it.
        end: How the reply ended.
    """
    if reading.wrong or not reading.answer_step:
        return reading
    number = step_number(reading.answer_step)
    wrong = _wrong_in_reply(reading, end) or _wrong_with_step(number, state, shape)
    if not wrong:
        return reading
    done, alone = "the answer is asked for by itself", {"answer_step": "", "body": ""}
    return reading.replace(wrong=wrong, form=ANSWER_STEP_FORM, done=done, **alone)


def result_of_reference(reading: FeedbackReading, state: EnhancedState) -> SpecialistResult | None:
    """The result that is the answer; None for an answer that the reply itself has."""
    results = _results(step_number(reading.answer_step), state)
    return results[0] if results else None


def foreseen_result(state: EnhancedState, warnings: Sequence[str]) -> SpecialistResult | None:
    """The result that the plan foresaw as its answer, where nothing is left to judge.

    Args:
        state: The state, with whole results.
        warnings: What was warned of since the state was written.
    """
    thinking = state.get("current_thinking_result")
    number = None if thinking is None else thinking.answer_step
    if number is None or warnings or not went_as_planned(state):
        return None
    return None if _wrong_with_step(number, state, None) else _results(number, state)[0]


def _wrong_in_reply(reading: FeedbackReading, end: ReplyEnd) -> str:
    """Why a reply does not name one step as the only answer, or an empty text."""
    if end.cut:
        return end.problem
    if reading.verdict != "complete":
        return "`answer_step` ends the work, but the verdict is `continue`."
    if step_number(reading.answer_step) is None:
        return f"`answer_step: {reading.answer_step[:_LONGEST]}` is not the number of one step."
    return "The reply has an `answer_step` and a body: two answers." if reading.body else ""


def _wrong_with_step(number: int | None, state: EnhancedState, shape: Shape | None) -> str:
    """Why the result of a step cannot be the answer, or an empty text."""
    steps, results = plan_of(state).by_id, _results(number, state)
    if number not in steps:
        return f"The plan has no step {number}."
    if len(results) != 1 or not can_be_answer(results[0], steps):
        return f"Step {number} has no single whole result of a success."
    if KNOWN.occur_in(results[0].text):
        return f"The result of step {number} holds a secret value."
    try:
        if shape is not None:
            shape.read(results[0].text)
    except MisshapenError as error:
        return f"The result of step {number} cannot be the answer: {error}."
    return ""


def step_number(written: str) -> int | None:
    """The number of the step that `answer_step` names, or None."""
    match = _NUMBER.fullmatch("".join(written[:_LONGEST].split()).strip("`*[]"))
    return int(match[1]) if match else None


def _results(number: int | None, state: EnhancedState) -> list[SpecialistResult]:
    results = newest_results(state).values()
    return [result for result in results if result.step_id == number]
