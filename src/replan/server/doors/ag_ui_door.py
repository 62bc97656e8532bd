"""The door of AG-UI: a front end lets a team answer the last message of a thread.

The messages that a request carries are the conversation. The id of its thread finds the run that
waits in it: answers to its interrupts, or the newest message, continue it.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, cast

from ag_ui import core as ag_ui
from ag_ui.encoder import EventEncoder
from langchain_core.messages import BaseMessage
from pydantic import JsonValue
from starlette.responses import Response

from replan.errors import ReplanError
from replan.log.report import RunReport
from replan.runs.asked.pending import PendingQuestion
from replan.server.doors.ag_ui_events import Course, interrupt_of
from replan.server.doors.chat_wire import ChatMessage
from replan.server.doors.conversations import (
    Begun,
    Conversations,
    Request,
    place_of,
    reply_text,
)
from replan.server.problems import RefusedError, as_refusal, bad_field
from replan.server.served_teams import ServedTeams
from replan.server.stream import Stream
from replan.server.web import Called, api_router, needs, streams
from replan.state.person.answers import shown_in
from replan.state.questions import Question

_NOT_SAID = ("tool", "activity", "reasoning")
"""Messages of a thread that nobody wrote: a front end's record of a run's course."""


router = api_router(tags=["experimental"])


@router.post(
    "/ag-ui/{team}",
    summary="Run a team for a front end",
    response_model=None,
    responses=streams(),
    **needs("run"),
)
async def run(call: Called, team: str, body: ag_ui.RunAgentInput) -> Response:
    """Run the last message of a thread, and stream the course as AG-UI events."""
    name = call.served.team_at(team)
    seat = call.served.stream_seat(call.who)
    turn = _Turn(call.served, body, Conversations(call.served, call.who, name))
    # What cannot be begun is a problem, and no stream.
    begun = await turn.begin()
    return Stream(turn.lines(begun), call.served.beat, seat)


@dataclass(frozen=True)
class _Turn:
    """One request of a thread."""

    served: ServedTeams
    body: ag_ui.RunAgentInput
    chats: Conversations

    async def begin(self) -> Begun | RunReport:
        """Begin a run, or continue the one that waits, or let that one wait."""
        if not self.body.thread_id:
            fix = "Name the thread: what waits in it is found by its name."
            raise bad_field("threadId", "", "it is empty", fix)
        if self.body.tools:
            fix = "Leave them out: the team's specialists have tools of their own."
            raise bad_field("tools", "...", "a team takes no tools from outside", fix)
        names = self._names
        waiting = await self.chats.waiting(self._key)
        if (again := await self.chats.repeated(names)) is not None:
            return again
        if waiting is None and self.body.resume:
            fix = "Leave it out, and send a message."
            raise bad_field("resume", "...", "nothing waits in this thread", fix)
        if waiting is None:
            # The same message may be answered anew, under another name of the run.
            request = Request(names.history, names.ids[:1])
            return await self.chats.begin("ag-ui", self._messages(), request=request)
        view, shown = waiting
        if not self.body.resume:
            return await self.chats.answer(view, self._last(), shown, names)
        given = _read_answers(self.body, view.pending_questions)
        if given is None:
            await self.chats.forget(self._key)
            return view
        return await self.chats.answer(view, given, shown_in(view.pending_questions), names)

    async def lines(self, begun: Begun | RunReport) -> AsyncGenerator[str]:
        """Report the course of the run as server-sent events."""
        encoder = EventEncoder()
        async with aclosing(self._events(begun)) as events:
            async for event in events:
                yield encoder.encode(event)

    async def _events(self, begun: Begun | RunReport) -> AsyncGenerator[ag_ui.BaseEvent]:
        ids: Any = {"thread_id": self.body.thread_id, "run_id": self.body.run_id}
        is_left = isinstance(begun, RunReport)
        behind = {"replan": {"run_id": begun.run_id if is_left else begun.run.run_id}}
        yield ag_ui.RunStartedEvent(**ids, protocol_version=ag_ui.PROTOCOL_VERSION, metadata=behind)
        if is_left:
            yield ag_ui.RunFinishedEvent(**ids, outcome=ag_ui.RunFinishedCancelledOutcome())
            return
        course = Course(begun.run, begun.after)
        try:
            async with aclosing(begun.run.events(after=begun.after, tokens=True)) as events:
                async for event in events:
                    for each in await course.events_for(event):
                        yield each
            await begun.run
            view = await begun.run.report()
            await self.chats.told(begun)
            await self.chats.note(self._key, view)
        except ReplanError as error:
            problem = as_refusal(error).problem
            yield ag_ui.RunErrorEvent(message=problem.detail, code=problem.code)
            return
        is_answered = view.outcome not in ("waiting", "interrupted", "failed")
        for each in course.end(view, reply_text(view) if is_answered else ""):
            yield each
        yield _final_event(ids, view, begun.problem)

    @property
    def _key(self) -> JsonValue:
        return ["ag-ui", self.body.thread_id]

    @property
    def _names(self) -> Request:
        """What the request is known by: its run, its last message or its answers, and all of it."""
        body, key = self.body, self._key
        said: Any = [each.model_dump(mode="json") for each in body.messages]
        given: Any = [each.model_dump(mode="json") for each in body.resume or ()]
        newest: Any = given or said[-1:]
        ids = ([key, "run", body.run_id, said, given], [key, "answer", newest])
        return Request(history=[key, "said", said, given], ids=ids)

    def _last(self) -> str:
        """The user's last message."""
        messages = [_message_of(each) for each in self.body.messages if each.role == "user"]
        if not messages or not messages[-1].text.strip():
            raise _empty_message_error()
        return messages[-1].text

    def _messages(self) -> list[BaseMessage]:
        messages = [_message_of(each) for each in self.body.messages if each.role not in _NOT_SAID]
        if not messages or messages[-1].role != "user" or not messages[-1].text.strip():
            raise _empty_message_error()
        known = [f"{each.description}: {each.value}" for each in self.body.context or ()]
        context = [ChatMessage(role="system", content="\n".join(known))] if known else []
        return [each.message for each in (*context, *messages)]


def _empty_message_error() -> RefusedError:
    fix = "Let a message of the user with a text be the last one."
    return bad_field("messages", "...", "the last message is empty", fix)


def _message_of(message: Any) -> ChatMessage:
    """A message of a thread, as other conversations have it."""
    content = message.content
    if isinstance(content, list):
        parts = cast("list[Any]", content)
        content = tuple(_part(each) for each in parts)
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
    asked = {place_of(each): each for each in asks}
    entries = body.resume or []
    for number, entry in enumerate(entries):
        if entry.interrupt_id not in asked:
            fix = f"Give one of: {', '.join(asked)}."
            path = f"resume[{number}].interruptId"
            raise bad_field(path, entry.interrupt_id, "the run does not wait for this answer", fix)
    given = {each.interrupt_id: each for each in entries}
    if len(given) < len(asked) or len(entries) > len(given):
        fix = f"Give one for each of: {', '.join(asked)}."
        raise bad_field("resume", len(entries), "each interrupt needs exactly one entry", fix)
    if any(each.status == "cancelled" for each in entries):
        return None
    return {asked[place].key: given[place].payload for place in asked}


def _final_event(ids: Any, view: RunReport, problem: str) -> ag_ui.BaseEvent:
    """The final event of a run at rest."""
    used = view.calls
    usage = [
        ag_ui.TokenUsage(
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            total_tokens=used.tokens,
        )
    ]
    result = {"run_id": view.run_id, "outcome": view.outcome}
    fields: Any = {**ids, "usage": usage, "result": result}
    match view.outcome:
        case "waiting":
            asked = [
                interrupt_of(PendingQuestion.of(each), problem) for each in view.pending_questions
            ]
            return ag_ui.RunFinishedEvent(
                **fields, outcome=ag_ui.RunFinishedInterruptOutcome(interrupts=asked)
            )
        case "interrupted" if not view.is_killed:
            return ag_ui.RunFinishedEvent(**fields, outcome=ag_ui.RunFinishedCancelledOutcome())
        case "failed" | "interrupted":
            return ag_ui.RunErrorEvent(message=reply_text(view), code=view.outcome, usage=usage)
        case _:
            return ag_ui.RunFinishedEvent(**fields, outcome=ag_ui.RunFinishedSuccessOutcome())
