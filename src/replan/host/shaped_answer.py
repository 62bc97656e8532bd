"""The answer that ends a run: read as the host's output type, reported, put into the state."""

from collections.abc import Callable
from typing import NamedTuple

from langchain_core.messages import AIMessage, BaseMessage
from pydantic import JsonValue

from replan.errors import LimitReachedError, ModelCallError
from replan.events.types import TaskCompleted
from replan.events.warnings import secret_warnings
from replan.host.answer_stream import AnswerStream
from replan.host.host_call import HostCall
from replan.memory.conversation import asked_again
from replan.models.chat import Chat
from replan.prompts.sections import within_budget
from replan.replies.shape import MisshapenError, Shape, as_text
from replan.state.enhanced import EnhancedState
from replan.state.outcomes import Outcome


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
        output, is_shown = _read(shape, raw, answer.text)
    except MisshapenError as error:
        problem = str(error)
    else:
        whole = answer if is_shown else _shown_instead(call, answer, as_text(output))
        return Answer(whole, output)
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


async def end_run(
    state: EnhancedState, call: HostCall, answer: Answer, outcome: Outcome, limit: str
) -> EnhancedState:
    """Report that the run is over, and return the update of the state."""
    usage = await call.usage(state)
    await call.close(state, answer.message)
    await call.emitter.warn(*([answer.problem] if answer.problem else []))
    await call.emitter.warn(*secret_warnings("The answer", answer.message.text))
    new = call.emitter.warnings
    warnings = (*state.get("warnings", []), *new)
    await call.emitter.emit(
        TaskCompleted,
        outcome=outcome,
        answer=answer.message,
        output=answer.output,
        usage=usage,
        warnings=warnings,
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


def _read(shape: Shape, raw: str, text: str) -> tuple[JsonValue, bool]:
    """The value of a reply, and whether the answer that was shown has it, too."""
    try:
        output = shape.read(raw)
    except MisshapenError:
        return shape.read(text), True
    try:
        return output, shape.read(text) == output
    except MisshapenError:
        return output, False


def _shown_instead(call: HostCall, shown: AIMessage, text: str) -> AIMessage:
    """Retract the answer that was shown, and show another one."""
    return AnswerStream(call.emitter, None, shown.text).finish(text)
