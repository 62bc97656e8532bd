"""The answer that ends a run: written, or the result of a step; read, completed, reported, stored.

What a specialist has written is not written again by the host: that takes no tokens, and no long
result is cut short on its way.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from langchain_core.messages import AIMessage, BaseMessage
from pydantic import JsonValue

from replan.base.errors import LimitReachedError, ModelCallError
from replan.base.secrets.masking import KNOWN
from replan.log.events.types import TaskCompleted
from replan.log.events.warnings import secret_warnings
from replan.models.chat import Chat
from replan.models.reply_end import ReplyEnd
from replan.nodes.host.host_call import HostCall
from replan.nodes.host.reply_parts import AnswerStream
from replan.nodes.host.steered_plan import report_missed
from replan.prompts.replies.citations import cited, without_places
from replan.prompts.replies.readings import FeedbackReading
from replan.prompts.replies.shape import MisshapenError, Shape, as_text
from replan.prompts.sections import within_budget
from replan.state.conversation.conversation import asked_again
from replan.state.enhanced import EnhancedState, plan_of
from replan.state.knowledge import Source
from replan.state.outcomes import Outcome
from replan.state.results import SpecialistResult, newest_results, sources_of_results
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


class Answer(NamedTuple):
    """An answer, and its value for programs."""

    message: AIMessage
    output: JsonValue = None  # its value, where the host has an output type
    problem: str = ""  # why there is no such value, though there had to be one; or empty


async def with_output(
    call: HostCall,
    chat: Chat,
    prompt_of: Callable[[int], list[BaseMessage]],
    answer: AIMessage,
    raw: str = "",
) -> Answer:
    """Read the value of an answer; an answer without one is requested again."""
    shape = call.services.output
    if shape is None:
        return Answer(answer)
    try:
        output, shown = _read(shape, raw, answer.text)
        return Answer(_shown_instead(call, answer, shown), output)
    except MisshapenError as error:
        problem = str(error)
    if call.refused is not None:
        return Answer(answer, None, f"There is no output: {call.refused}")
    complaint = f"Your answer cannot be used: {problem}. {shape.instruction}"

    def again(budget: int) -> list[BaseMessage]:
        return asked_again(prompt_of(budget), within_budget(answer.text, budget), complaint)

    try:
        reply, _ = await call.ask_in_room(chat, again)
        output = shape.read(reply)
        return Answer(_shown_instead(call, answer, reply), output)
    except MisshapenError as error:
        problem = str(error)
    except (ModelCallError, LimitReachedError) as error:
        problem = f"{problem}; {error}".rstrip(".")
    return Answer(answer, None, f"There is no output: {problem}.")


def _read(shape: Shape, raw: str, text: str) -> tuple[JsonValue, str]:
    """The value of a reply, and the text that shows it: the answer that was shown, if it can."""
    try:
        output = shape.read(raw)
    except MisshapenError:
        return shape.read(text), text
    try:
        return output, text if shape.read(text) == output else as_text(output)
    except MisshapenError:
        return output, as_text(output)


def completed(
    answer: AIMessage, state: EnhancedState, call: HostCall, missing: str = ""
) -> AIMessage:
    """Add the sources that an answer cites, and what was left undone; marks of no source go.

    Rules do it, so that no model can omit them.
    """
    text = answer.text
    if call.services.knowledge is not None and call.services.output is None:
        sources = _sources_in(state)
        text, listed = cited(text, sources) if sources else (without_places(text), "")
        text = f"{text.rstrip()}\n\n{listed}" if listed else text
    text += f"\n\n**Not done:**\n\n{missing}" if missing else ""
    return _shown_instead(call, answer, text)


def _sources_in(state: EnhancedState) -> tuple[Source, ...]:
    """All sources that the run received."""
    knowledge = state.get("knowledge")
    own = () if knowledge is None else knowledge.sources
    return tuple(dict.fromkeys([*own, *sources_of_results(state)]))


def _shown_instead(call: HostCall, answer: AIMessage, text: str) -> AIMessage:
    """Return an answer that has another text; what of it is not shown yet is shown."""
    same = text == answer.text
    return answer if same else AnswerStream(call.emitter, before=answer).finish(text)


async def end_run(
    state: EnhancedState, call: HostCall, answer: Answer, outcome: Outcome, limit: str
) -> EnhancedState:
    """Report that the run is over, and return the update of the state."""
    usage = await call.usage(state)
    await report_missed(call.emitter, call.services.log)
    await call.close(state, answer.message)
    await call.emitter.warn(*([answer.problem] if answer.problem else []))
    await call.emitter.warn(*secret_warnings("The answer", answer.message.text))
    new = call.emitter.warnings
    await call.emitter.emit(
        TaskCompleted,
        outcome=outcome,
        answer=answer.message,
        output=answer.output,
        usage=usage,
        warnings=(*state.get("warnings", []), *new),
    )
    return {
        "messages": [answer.message],
        "final_answer": answer.message,
        "output": answer.output,
        "is_completed": True,
        "outcome": outcome,
        "limit_reached": limit,
        "usage": usage,
        "warnings": new,
    }
