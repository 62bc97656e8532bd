"""AG-UI as exchanges: a front end lets a team answer the last message of a thread.

The messages that a request carries are the conversation. The id of its thread finds the run that
waits in it: answers to its interrupts, or the newest message, continue it.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, cast

from ag_ui import core as ag_ui
from ag_ui.encoder import EventEncoder
from langchain_core.messages import BaseMessage
from pydantic import JsonValue

from replan.base.errors import InputError, ReplanError
from replan.log.report import RunReport
from replan.server.doors.ag_ui_events import Course, interrupt_of, state_of
from replan.server.doors.chat_wire import ChatMessage, check_no_tools, newest_of
from replan.server.exchange import (
    Begun,
    Ended,
    Exchange,
    RequestNames,
    WaitingRun,
    answers_at,
    place_of,
)
from replan.server.exchange_texts import reply_text
from replan.server.problems import as_refusal, bad_field
from replan.state.questions import Question

_NOT_SAID = ("tool", "activity", "reasoning")
"""Messages of a thread that nobody wrote: a front end's record of a run's course."""


async def begin(exchange: Exchange, body: ag_ui.RunAgentInput) -> Begun:
    """Begin a run, or continue the one that waits, or let that one wait."""
    if not body.thread_id:
        fix = "Name the thread: what waits in it is found by its name."
        raise bad_field("threadId", "", "it is empty", fix)
    check_no_tools("tools", body.tools)

    def new() -> dict[str, Any]:
        if body.resume:
            fix = "Leave it out, and send a message."
            raise bad_field("resume", "...", "nothing waits in this thread", fix)
        return {"messages": _messages(body)}

    def answers(waiting: WaitingRun) -> object:
        _check_state(body.state, waiting.report)
        asks = waiting.report.pending_questions
        return _read_answers(body, asks) if body.resume else _newest(body).answer

    def tells() -> str:
        # Answers are of what is asked no longer.
        return "" if body.resume else _newest(body).answer

    conversation = exchange.conversation(body.thread_id)
    return await exchange.begin_or_continue(
        key_of(body), new, answers, _names(body), conversation=conversation, tells=tells
    )


async def lines(exchange: Exchange, body: ag_ui.RunAgentInput, begun: Begun) -> AsyncGenerator[str]:
    """Report the course of the run as server-sent events."""
    encoder = EventEncoder()
    async with aclosing(_events(exchange, body, begun)) as events:
        async for event in events:
            yield encoder.encode(event)


async def _events(
    exchange: Exchange, body: ag_ui.RunAgentInput, begun: Begun
) -> AsyncGenerator[ag_ui.BaseEvent]:
    ids: Any = {"thread_id": body.thread_id, "run_id": body.run_id}
    behind = {"replan": {"run_id": begun.run.run_id}}
    yield ag_ui.RunStartedEvent(**ids, protocol_version=ag_ui.PROTOCOL_VERSION, metadata=behind)
    if begun.is_left:
        yield ag_ui.RunFinishedEvent(**ids, outcome=ag_ui.RunFinishedCancelledOutcome())
        return
    course = Course(begun.run, begun.after, exchange.served.clock())
    async with aclosing(exchange.parts(begun)) as parts:
        async for part in parts:
            match part:
                case ReplanError():
                    refusal = as_refusal(part)
                    code = refusal.problem.code
                    sent = [ag_ui.RunErrorEvent(message=refusal.explained, code=code)]
                case Ended(report, reply):
                    is_answered = report.outcome not in ("waiting", "interrupted", "failed")
                    last = _final_event(ids, report, part.problem)
                    answer = reply if is_answered else ""
                    sent = [*course.end(report, answer, part.streamed), last]
                case _:
                    sent = await course.events_for(part)
            for event in sent:
                yield event


def key_of(body: ag_ui.RunAgentInput) -> JsonValue:
    """By what a run that waits is found: its thread."""
    return ["ag-ui", body.thread_id]


def _names(body: ag_ui.RunAgentInput) -> RequestNames:
    """What the request is known by: its run, its last message or its answers, and all of it."""
    key = key_of(body)
    messages: Any = [message.model_dump(mode="json") for message in body.messages]
    said: Any = [message.model_dump(mode="json") for message in _said_by_user_last(body)]
    answers: Any = [entry.model_dump(mode="json") for entry in body.resume or ()]
    # The same message may be answered anew, under another name of the run.
    return RequestNames(
        history=[key, "said", said, answers],
        ids=([key, "run", body.run_id, messages, answers],),
        answer_ids=([key, "answer", answers or said[-1:]],),
    )


def _said(body: ag_ui.RunAgentInput) -> list[Any]:
    """What somebody said in the thread."""
    return [message for message in body.messages if message.role not in _NOT_SAID]


def _said_by_user_last(body: ag_ui.RunAgentInput) -> list[Any]:
    """What was said up to the user's newest message: what follows it is this server's own."""
    said = _said(body)
    while said and said[-1].role != "user":
        said.pop()
    return said


def _newest(body: ag_ui.RunAgentInput) -> ChatMessage:
    """The newest message, which has to be the user's: an older one was said before."""
    said = _said(body)
    return newest_of([_message_of(message) for message in said[-1:]])


def _messages(body: ag_ui.RunAgentInput) -> list[BaseMessage]:
    _newest(body)
    messages = [_message_of(message) for message in _said(body)]
    context_lines = [f"{context.description}: {context.value}" for context in body.context or ()]
    context = (
        [ChatMessage(role="system", content="\n".join(context_lines))] if context_lines else []
    )
    return [message.message for message in (*context, *messages)]


def _check_state(state: Any, report: RunReport) -> None:
    """Refuse a request whose state has another plan than the run: an edit there changes nothing.

    Raises:
        InputError: It has. The client is shown the state of the run again.
    """
    given = cast("dict[str, Any]", state) if isinstance(state, dict) else {}
    shown = state_of(report) if report.plan is not None else {}
    if any(name in given and given[name] != value for name, value in shown.items()):
        raise InputError(
            "The plan in `state` is not the one of the run, and an edit there changes nothing, so "
            "this was not used. Answer for the plan as it is, or give the edited plan as the "
            "answer where the plan is asked about."
        )


def _message_of(message: Any) -> ChatMessage:
    """A message of a thread, as other conversations have it."""
    content = message.content
    if isinstance(content, list):
        parts = cast("list[Any]", content)
        content = tuple(_part(part) for part in parts)
    return ChatMessage.model_validate({"role": message.role, "content": content or ""})


def _part(part: Any) -> dict[str, Any]:
    if part.type == "text":
        return {"type": "text", "text": part.text}
    source = getattr(part, "source", None)
    if part.type != "image" or source is None or source.type not in ("data", "url"):
        fix = "Send texts, and images with their data or a URL."
        raise bad_field("messages", part.type, "a team cannot read this part", fix)
    is_url = source.type == "url"
    url = source.value if is_url else f"data:{source.mime_type};base64,{source.value}"
    return {"type": "image_url", "image_url": {"url": url}}


def _read_answers(
    body: ag_ui.RunAgentInput, asks: Sequence[Question]
) -> Mapping[str, JsonValue] | None:
    """The answers to all interrupts; None if one is abandoned, and nothing is decided."""
    entries = body.resume or []
    payloads: dict[str, JsonValue] = {entry.interrupt_id: entry.payload for entry in entries}
    if not len(asks) == len(payloads) == len(entries):
        fix = f"Give one for each of: {', '.join(map(place_of, asks))}."
        raise bad_field("resume", len(entries), "each interrupt needs exactly one entry", fix)
    answers = answers_at(payloads, asks, "resume[{}].interruptId")
    return None if any(entry.status == "cancelled" for entry in entries) else answers


def _final_event(ids: Any, report: RunReport, problem: str) -> ag_ui.BaseEvent:
    """The final event of a run at rest."""
    used = report.calls
    usage = [
        ag_ui.TokenUsage(
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            total_tokens=used.total_tokens,
        )
    ]
    result = {"run_id": report.run_id, "outcome": report.outcome}
    fields: Any = {**ids, "usage": usage, "result": result}
    match report.outcome:
        case "waiting":
            asked = [interrupt_of(question, problem) for question in report.pending_questions]
            return ag_ui.RunFinishedEvent(
                **fields, outcome=ag_ui.RunFinishedInterruptOutcome(interrupts=asked)
            )
        case "interrupted" if not report.is_killed:
            return ag_ui.RunFinishedEvent(**fields, outcome=ag_ui.RunFinishedCancelledOutcome())
        case "failed" | "interrupted":
            return ag_ui.RunErrorEvent(message=reply_text(report), code=report.outcome, usage=usage)
        case _:
            return ag_ui.RunFinishedEvent(**fields, outcome=ag_ui.RunFinishedSuccessOutcome())
