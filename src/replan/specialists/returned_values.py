"""Reads what user code returned, as messages and as a result."""

from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_messages
from langchain_core.prompt_values import PromptValue

from replan.base.texts.storable import storable_text
from replan.base.values import fields_in
from replan.models.reply_end import ReplyEnd, end_of
from replan.plan.model import TaskPlan
from replan.ports.run_context import here
from replan.prompts.replies.readings import read_specialist
from replan.prompts.replies.shape import MisshapenError, Shape, as_text
from replan.state.outcomes import INCOMPLETE
from replan.state.results import ExecutionStatus, SpecialistResult

_OF_A_RUN = {"run_id", "outcome", "current_plan"}
"""Keys by which the state of a team is known."""

_MOST_NAMED = 3  # failed steps of such a run that an error names

_REASONING = ("reasoning_content", "reasoning")


def messages_of(value: object) -> list[BaseMessage]:
    """Read the messages that an input processor returned."""
    if isinstance(value, str):
        return [HumanMessage(value)]
    if isinstance(value, BaseMessage):
        return [value]
    if isinstance(value, PromptValue):
        return value.to_messages()
    if isinstance(value, list | tuple):
        return convert_to_messages(cast("list[Any]", value))
    raise TypeError(f"the input processor returned {_kind(value)}; return a list of messages")


def message_of(answer: object) -> BaseMessage:
    """Read the message from what a runnable returned."""
    if isinstance(answer, BaseMessage):
        return answer
    if isinstance(answer, str):
        return AIMessage(storable_text(answer))
    state = fields_in(answer)
    if state.get("__interrupt__"):
        # Its newest message is the request.
        raise TypeError(
            "it returned a graph that waits for a person, and nobody can answer it there. Ask with "
            "replan.ask_user; do not give the graph a thread of its own, nor its step to the "
            "workers of a queue"
        )
    messages: Any = state.get("messages")
    if messages:
        return message_of(messages[-1])
    raise TypeError(
        f"it returned {_kind(answer)}; return a message, a text, or a "
        "state with `messages`, or give the specialist an output_type"
    )


def result_of(answer: object) -> SpecialistResult:
    """Read the result from what a function returned."""
    if isinstance(answer, SpecialistResult):
        return answer
    message = message_of(answer)
    said = AIMessage(storable_text(message.text), id=message.id)
    return as_its_run_ended(SpecialistResult(result=said, cut=end_of(message).cut), answer)


def shaped_result(answer: object, shape: Shape) -> SpecialistResult:
    """Read a typed result from a returned value: a value of the type, or JSON in a text."""
    if isinstance(answer, SpecialistResult | BaseMessage | str):
        result = result_of(answer)
        value = result.output
        if result.is_failed:
            return result
        output = shape.read(result.text) if value is None else shape.checked(value)
        return _with_text(result.replace(output=output))
    return _with_text(SpecialistResult(output=shape.checked(answer)))


def structured_in(answer: object) -> object:
    """The structured response of a LangChain or LangGraph agent; None without one."""
    return fields_in(answer).get("structured_response")


def as_its_run_ended(result: SpecialistResult, answer: object) -> SpecialistResult:
    """The result of a team's graph, which is no better than the end of its run.

    Args:
        result: What its answer says.
        answer: What was returned; of anything but a team, the result stays as it is.
    """
    state = fields_in(answer)
    if not state.keys() >= _OF_A_RUN:
        return result
    for text in cast("list[str]", state.get("warnings") or ()):
        here().warn(text)
    outcome, limit = state["outcome"], str(state.get("limit_reached") or "")
    if outcome not in (*INCOMPLETE, "rejected"):
        return result
    plan: TaskPlan | None = state.get("current_plan")
    failed = [each for each in (plan.steps if plan else ()) if each.feedback][:_MOST_NAMED]
    if outcome == "partial" and limit and not failed and (plan is None or plan.completed_steps):
        return result.replace(cut=result.cut or limit)
    # A limit is not the work's own failure, and may be one of the run around it.
    is_part = outcome == "partial" or bool(limit)
    status = ExecutionStatus.PARTIAL if is_part else ExecutionStatus.FAILED
    reasons = [f"the limit {limit} was reached"] if limit else []
    reasons += [f"step {each.id}: {each.feedback}" for each in failed]
    error = "; ".join([f"the run of the team ended '{outcome}'", *reasons])
    # Its steps had attempts of their own.
    return result.replace(status=status, error=error, retry=False)


def _with_text(result: SpecialistResult) -> SpecialistResult:
    if result.result is not None:
        return result
    return result.replace(result=AIMessage(as_text(result.output)))


def result_in(message: BaseMessage, end: ReplyEnd) -> SpecialistResult:
    """Read the reply to a specialist's prompt, with its front matter if it has one.

    Raises:
        MisshapenError: It cannot be said whether the work succeeded.
        ValueError: There is no result in it.
    """
    text = message.text
    if not text.strip() and end.cut:
        # It was already requested twice.
        failed, error = ExecutionStatus.FAILED, f"there is no result: {end.why}"
        return SpecialistResult(status=failed, error=error, retry=False)
    if not text.strip() and any(message.additional_kwargs.get(name) for name in _REASONING):
        problem = "the model returned only its reasoning, and no result"
        raise ValueError(f"{problem}. Check the reasoning parser of its server.")
    if not text.strip():
        raise ValueError("the model returned an empty reply")
    reading = read_specialist(text)
    if reading.wrong:
        raise MisshapenError(f"it does not say how the work ended: {reading.wrong.rstrip('.')}")
    if not reading.body:
        raise ValueError("the model returned thoughts or marks, and no result")
    if reading.odd:
        here().warn(reading.odd)
    return SpecialistResult(
        # The id of what was streamed, so that LangGraph does not show it twice.
        result=AIMessage(storable_text(reading.body), id=message.id),
        status=reading.status,
        confidence=reading.confidence,
        replan_needed=reading.replan_needed,
        retry=reading.retry,
        cut=end.cut,
    )


def _kind(thing: object) -> str:
    return type(thing).__name__
