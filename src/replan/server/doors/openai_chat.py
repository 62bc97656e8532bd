"""OpenAI's doors: a team is a model, and a run answers the newest message of a conversation.

The question of a run that waits is the answer. The next request of the same conversation, which
its messages or its session id identify, answers it. A plan or a call is decided only by an explicit
decision about what was shown.
"""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import JsonValue
from starlette.responses import Response

from replan.errors import ReplanError
from replan.events.types import Event
from replan.log.report import RunReport
from replan.server.callers.identity import Identity
from replan.server.doors import chat_wire
from replan.server.doors.conversations import (
    Begun,
    Conversations,
    Request,
    progress_line,
    reply_text,
    text_in,
)
from replan.server.problems import as_refusal
from replan.server.served_teams import ServedTeams
from replan.server.stream import Stream
from replan.server.web import Call, Called, api_router, needs, problems, streams

JSON = "application/json"
_SENT_BEFORE = (
    "\n\n(This message was sent before, and answered the question before. "
    "To give the same answer once more, name the question: `{}=ANSWER`.)"
)


router = api_router(problems(JSON, {"schema": {"type": "object", "required": ["error"]}}))


@router.get("/v1/models", summary="List the teams as models")
async def models(call: Called) -> chat_wire.ModelList:
    """List the teams as models."""
    return chat_wire.ModelList(
        data=tuple(chat_wire.Model(id=name) for name in call.served.runtimes)
    )


@router.get("/v1/models/{model}", summary="Describe a team as a model")
async def model(call: Called, model: str) -> chat_wire.Model:
    """Describe a team as a model."""
    return chat_wire.Model(id=call.served.team_at(model, "model"))


@router.post(
    "/v1/chat/completions",
    summary="Answer a conversation",
    response_model=chat_wire.ChatCompletion,
    responses=streams(),
    **needs("run"),
)
async def complete(call: Called, body: chat_wire.ChatBody) -> chat_wire.ChatCompletion | Response:
    """Answer the newest message of a conversation."""
    body.check()
    team = call.served.team_at(body.model, "model")
    chats = Conversations(call.served, call.who, team)
    turn = Turn(call.served, call.who, body, team, chats, _request(call, body))
    seat = call.served.stream_seat(call.who) if body.stream else None
    begun = await turn.begin()
    if seat is None:
        return await turn.completion(begun)
    return Stream(turn.pieces(begun), call.served.beat, seat)


@dataclass(frozen=True)
class Turn:
    """One request of a conversation."""

    served: ServedTeams
    who: Identity
    body: chat_wire.ChatBody
    team: str
    chats: Conversations
    request: Request

    async def begin(self) -> Begun:
        """Begin a run, or continue the one that waits.

        Raises:
            RefusedError: It may not be answered by this token, or nothing is left of an allowance.
        """
        body = self.body
        # What waits has asked something before: of a new conversation, nothing is looked up.
        is_new = not body.session_id and all(each.role != "assistant" for each in body.messages)
        waiting = None if is_new else await self.chats.waiting(_key(body, body.messages[:-1]))
        if (again := await self.chats.repeated(self.request)) is not None:
            return again
        if waiting is None:
            thread = self.chats.thread(body.session_id)
            said = [each.message for each in body.news]
            return await self.chats.begin("chat", said, thread, self.request)
        view, shown = waiting
        return await self.chats.answer(view, body.messages[-1].text, shown, self.request)

    async def reply_for(self, view: RunReport, begun: Begun) -> str:
        """The reply about a run at rest; a run that waits is found again by its reply."""
        if begun.reply is not None:
            is_newest = self.body.session_id and view.outcome == "waiting"
            return begun.reply + (
                _SENT_BEFORE.format(view.pending_questions[0].key) if is_newest else ""
            )
        text = reply_text(view, begun.problem)
        answer = chat_wire.ChatMessage(role="assistant", content=text)
        await self.chats.told(begun, text)
        await self.chats.note(_key(self.body, [*self.body.messages, answer]), view)
        return text

    async def completion(self, begun: Begun) -> chat_wire.ChatCompletion:
        """Wait for the answer."""
        if begun.reply is None:
            await begun.run
        view = await begun.run.report()
        message = chat_wire.ChatReply(content=await self.reply_for(view, begun))
        if self.body.tells_course and begun.reply is None:
            events = begun.run.events(after=begun.after)
            course = "".join([progress_line(each) async for each in events])
            message = message.replace(reasoning_content=course)
        return chat_wire.ChatCompletion(
            id=f"chatcmpl-{view.run_id}",
            created=int(self.served.clock().timestamp()),
            model=self.team,
            choices=(chat_wire.ChatChoice(message=message, finish_reason=_finish(view)),),
            usage=_usage(view),
            replan=chat_wire.RunReference(run_id=view.run_id, outcome=view.outcome),
        )

    async def pieces(self, begun: Begun) -> AsyncGenerator[str]:
        """Stream the answer piece by piece; failures are errors in OpenAI's form."""
        head: dict[str, Any] = {
            "id": f"chatcmpl-{begun.run.run_id}",
            "object": "chat.completion.chunk",
            "created": int(self.served.clock().timestamp()),
            "model": self.team,
        }
        yield _piece(head, {"role": "assistant", "content": ""})
        text = ""
        try:
            if begun.reply is None:
                events = begun.run.events(after=begun.after, tokens=True)
                async with aclosing(events):
                    async for event in events:
                        text += text_in(event)
                        if delta := self._delta(event):
                            yield _piece(head, delta)
            if begun.reply is None:
                await begun.run
            view = await begun.run.report()
            whole = await self.reply_for(view, begun)
        except ReplanError as error:
            yield f"data: {json.dumps(chat_wire.openai_error(as_refusal(error)))}\n\n"
            return
        if whole != text:
            # A reply that was begun again cannot be taken back.
            rest = whole.removeprefix(text) if whole.startswith(text) else f"\n\n{whole}"
            yield _piece(head, {"content": rest})
        behind = {"replan": {"run_id": view.run_id, "outcome": view.outcome}}
        yield _piece({**head, **behind}, {}, _finish(view))
        if self.body.has_usage:
            usage = _usage(view).model_dump(mode="json")
            yield f"data: {json.dumps({**head, 'choices': [], 'usage': usage})}\n\n"
        yield "data: [DONE]\n\n"

    def _delta(self, event: Event) -> dict[str, str]:
        """The part of a streamed piece for an event; empty for most events."""
        if text := text_in(event):
            return {"content": text}
        course = progress_line(event) if self.body.tells_course else ""
        return {"reasoning_content": course} if course else {}


def _key(body: chat_wire.ChatBody, said: Sequence[chat_wire.ChatMessage]) -> JsonValue:
    """The key of a conversation: its session id, else its messages."""
    return body.session_id or chat_wire.comparable(said)


def _request(call: Call, body: chat_wire.ChatBody) -> Request:
    """What a request is known by: everything that was said, and the key of its client."""
    if key := call.idempotency_key:
        return Request(ids=(["idempotency", key],))
    said = [each.model_dump(mode="json") for each in body.messages]
    return Request(history=["said", body.session_id, *said])


def _piece(head: Mapping[str, Any], delta: Mapping[str, str], finish: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return f"data: {json.dumps({**head, 'choices': [choice]})}\n\n"


def _finish(view: RunReport) -> Literal["stop", "length"]:
    return "length" if view.limit_reached else "stop"


def _usage(view: RunReport) -> chat_wire.ChatUsage:
    used = view.calls
    return chat_wire.ChatUsage(
        prompt_tokens=used.input_tokens,
        completion_tokens=used.output_tokens,
        total_tokens=used.tokens,
    )
