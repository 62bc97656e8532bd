"""Conversations of chat clients: the run that waits in one, and what is said of it."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue

from replan.errors import InputError
from replan.runs.asks import Ask
from replan.runs.looking import RunView
from replan.runs.run_event import RunEvent
from replan.server.callers.identity import Identity
from replan.server.doors.chat_wire import ChatBody, ChatMessage, said_before
from replan.server.house import House

_PLACE = ("replan", "server", "chats")
_HOW = {
    "plan": "Answer `approve`, `reject: WHY`, or with the changed plan.",
    "approval": "Answer `approve`, or `reject: WHY`.",
    "in doubt": "Answer `run again`, or with what it did.",
}


@dataclass(frozen=True)
class Conversations:
    """The conversations of a token with a team.

    A run that waits is noted in the store under what its client sends next: the session id, or
    everything that was said until then, with the question itself.
    """

    house: House
    who: Identity
    team: str

    async def waiting(self, body: ChatBody) -> tuple[RunView, Mapping[str, str]] | None:
        """The run of a conversation that waits, with the fingerprints of what it showed."""
        item = await self.house.storage.store.aget(self._place, _key(body, body.messages[:-1]))
        run_id = str(item.value["run_id"]) if item is not None else ""
        record = await self.house.storage.runs.get(run_id) if run_id else None
        if item is None or record is None or not self.house.is_seen(record, self.who):
            return None
        view = await self.house.runtime_of(record).look(run_id)
        shown = cast("Mapping[str, str]", item.value["shown"])
        return (view, shown) if view.outcome == "waiting" else None

    async def told(self, body: ChatBody, view: RunView, problem: str = "") -> str:
        """What is said of a run at rest; one that waits is found again by it."""
        said = said_of(view, problem)
        if view.outcome == "waiting":
            answer = ChatMessage(role="assistant", content=said)
            shown = {ask.key: ask.fingerprint for ask in view.waiting}
            value = {"run_id": view.run_id, "shown": shown}
            key = _key(body, [*body.messages, answer])
            await self.house.storage.store.aput(self._place, key, value, index=False)
        return said

    def thread(self, body: ChatBody) -> str | None:
        """The thread of a session; None for a conversation that its client keeps."""
        if not body.session_id:
            return None
        return "chat-" + _digest([self.who.tenant, self.who.name, self.team, body.session_id])

    @property
    def _place(self) -> tuple[str, ...]:
        return (*_PLACE, f"t-{self.who.tenant}", f"n-{self.who.name}", _digest(self.team))


def _key(body: ChatBody, said: Sequence[ChatMessage]) -> str:
    """What a conversation is found by: its session id, else what was said in it."""
    return _digest(body.session_id or said_before(said))


def _digest(value: JsonValue) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def answers_in(text: str, asks: Sequence[Ask], shown: Mapping[str, str]) -> dict[str, JsonValue]:
    """Read a message as answers to what was shown.

    Raises:
        InputError: Several things are asked, and it does not say which it answers.
    """
    given: dict[str, JsonValue] = {}
    if len(asks) == 1:
        given = {asks[0].key: text}
    else:
        try:
            read: object = json.loads(text)
        except (ValueError, RecursionError):
            read = None
        if not isinstance(read, dict) or not read:
            form = json.dumps({ask.key: "..." for ask in asks})
            raise InputError(f"Several things are asked. Answer with a JSON object: {form}.")
        given = cast("dict[str, JsonValue]", read)
    # What is decided is what was shown, and nothing that is asked since.
    return {
        key: {"answer": each, "fingerprint": shown[key]} if shown.get(key) else each
        for key, each in given.items()
    }


def course_of(event: RunEvent) -> str:
    """A line about the course of the plan; empty for an event that does not change it."""
    told = event.details
    match event.type:
        case "plan_created":
            return "A plan was made.\n"
        case "plan_updated":
            return "The plan was revised.\n"
        case "specialist_invoked":
            return f"Step {told.get('step_id')} @{told.get('specialist')}: {told.get('task')}\n"
        case "specialist_completed":
            return f"Step {told.get('step_id')} @{told.get('specialist')}: {told.get('status')}\n"
        case "specialist_retried":
            return f"Step {told.get('step_id')} @{told.get('specialist')} is done again.\n"
        case _:
            return ""


def said_of(view: RunView, problem: str = "") -> str:
    """The answer of a run, what it asks, or why there is none."""
    answer = view.state.get("final_answer")
    if view.outcome != "waiting":
        return answer.text if answer is not None else f"There is no answer: {view.why}."
    problems = dict.fromkeys([problem, *(ask.problem for ask in view.waiting)])
    if len(view.waiting) == 1:
        asked = _asked(view.waiting[0])
    else:
        asked = "\n\n".join(f"`{ask.key}`: {_asked(ask)}" for ask in view.waiting)
    # Two conversations may say the same; what is asked in them is never the same.
    return "\n\n".join([*filter(None, problems), asked, f"(run {view.run_id})"])


def _asked(ask: Ask) -> str:
    details = ""
    if ask.kind == "approval" and ask.details is not None:
        details = f"```json\n{json.dumps(ask.details, indent=2, ensure_ascii=False)}\n```"
    return "\n\n".join(filter(None, [*ask.remarks, ask.text, details, _HOW.get(ask.kind, "")]))
