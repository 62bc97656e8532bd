"""The answer that ends a run: read as the host's output type, completed, reported, stored."""

from collections.abc import Callable
from typing import NamedTuple

from langchain_core.messages import AIMessage, BaseMessage
from pydantic import JsonValue

from replan.base.errors import LimitReachedError, ModelCallError
from replan.log.events.types import TaskCompleted
from replan.log.events.warnings import secret_warnings
from replan.models.chat import Chat
from replan.nodes.host.answer_stream import AnswerStream
from replan.nodes.host.host_call import HostCall
from replan.nodes.host.steering_outcome import report_missed
from replan.prompts.replies.citations import cited, without_places
from replan.prompts.replies.shape import MisshapenError, Shape, as_text
from replan.prompts.sections import within_budget
from replan.state.conversation.conversation import asked_again
from replan.state.enhanced import EnhancedState
from replan.state.knowledge import Source
from replan.state.outcomes import Outcome
from replan.state.results import sources_of_results


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
