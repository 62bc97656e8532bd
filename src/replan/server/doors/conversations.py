"""Conversations of chat clients: the run that waits in one, and what is said about it."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import BaseMessage
from pydantic import JsonValue

from replan.errors import InputError
from replan.runs.asked.asks import Ask
from replan.runs.log.run_event import RunEvent
from replan.runs.looking import RunView
from replan.runs.run import Run
from replan.server.callers.identity import Identity
from replan.server.endpoints import check_role
from replan.server.response_schemas import AskTold
from replan.server.served_teams import ServedTeams
from replan.server.work import answer_run, begin_run

_PLACE = ("replan", "server", "chats")
_HOW = {
    "plan": "Answer `approve`, `reject: WHY`, or with the changed plan.",
    "approval": "Answer `approve`, or `reject: WHY`.",
}


@dataclass(frozen=True)
class Begun:
    """The run that answers a request."""

    run: Run
    after: int = 0  # the number of its last event that is known
    problem: str = ""  # why what was said could not be used


@dataclass(frozen=True)
class Conversations:
    """The conversations of a token with a team.

    A run that waits is noted in the store under a key: what its client sends next.
    """

    served: ServedTeams
    who: Identity
    team: str

    async def begin(
        self, door: str, messages: Sequence[BaseMessage], thread_id: str | None = None
    ) -> Begun:
        """Begin a run.

        Raises:
            RefusedError: Nothing is left of an allowance.
        """
        options: Any = {"run_id": self.served.new_id(), "labels": {"door": door}}
        given = {"messages": list(messages)}
        options["thread_id"] = thread_id
        return Begun(
            await begin_run(self.served, self.who, self.team, given, tokens=True, **options)
        )

    async def answer(self, view: RunView, answers: Callable[[], Mapping[str, JsonValue]]) -> Begun:
        """Continue a run that waits; answers that do not fit are its problem.

        Raises:
            RefusedError: It may not be answered by this token, or nothing is left of an allowance.
        """
        check_role(self.who, "answer")
        known = len(await self.served.storage.runs.events(view.run_id))
        try:
            run = await answer_run(self.served, self.who, view.record, answers(), tokens=True)
        except InputError as error:
            run = Run(self.served.runtime_of(view.record), view.run_id)
            return Begun(run, known, str(error))
        return Begun(run, known)

    async def waiting(self, key: JsonValue) -> tuple[RunView, Mapping[str, str]] | None:
        """The run of a conversation that waits, with the fingerprints of what it showed."""
        item = await self.served.storage.store.aget(self._place, _digest(key))
        run_id = str(item.value["run_id"]) if item is not None else ""
        record = await self.served.storage.runs.get(run_id) if run_id else None
        if item is None or record is None or not self.served.is_seen(record, self.who):
            return None
        view = await self.served.runtime_of(record).look(run_id)
        shown = cast("Mapping[str, str]", item.value["shown"])
        return (view, shown) if view.outcome == "waiting" else None

    async def note(self, key: JsonValue, view: RunView) -> None:
        """Note a run that waits, so that it is found again."""
        if view.outcome == "waiting":
            shown = {ask.key: ask.fingerprint for ask in view.waiting}
            value = {"run_id": view.run_id, "shown": shown}
            await self.served.storage.store.aput(self._place, _digest(key), value, index=False)

    async def forget(self, key: JsonValue) -> None:
        """Leave a run waiting for another person."""
        await self.served.storage.store.adelete(self._place, _digest(key))

    def thread(self, session_id: str) -> str | None:
        """The thread of a session; None for a conversation that its client keeps."""
        if not session_id:
            return None
        return "chat-" + _digest([self.who.tenant, self.who.name, self.team, session_id])

    @property
    def _place(self) -> tuple[str, ...]:
        return (*_PLACE, f"t-{self.who.tenant}", f"n-{self.who.name}", _digest(self.team))


def _digest(value: JsonValue) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def place_of(ask: Ask | AskTold) -> str:
    """The key of an answer: the question and its shown content."""
    return f"{ask.key} {ask.fingerprint}".strip()


def read_answers(text: str, asks: Sequence[Ask], shown: Mapping[str, str]) -> dict[str, JsonValue]:
    """Read a message as answers to the questions that were shown.

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


def progress_line(event: RunEvent) -> str:
    """A line about the course of the plan; empty for an event that does not change it."""
    details = event.details
    step = f"Step {details.get('step_id')} @{details.get('specialist')}"
    match event.type:
        case "plan_created":
            return "A plan was made.\n"
        case "plan_updated":
            return "The plan was revised.\n"
        case "specialist_invoked":
            return f"{step}: {details.get('task')}\n"
        case "specialist_completed":
            return f"{step}: {details.get('status')}\n"
        case "specialist_retried":
            return f"{step} is done again.\n"
        case _:
            return ""


def text_in(event: RunEvent) -> str:
    """The piece of the answer that an event is; empty for any other."""
    return str(event.details.get("text", "")) if event.type == "answer_token" else ""


def reply_text(view: RunView, problem: str = "") -> str:
    """The answer of a run, its questions, or the reason for no answer."""
    answer = view.state.get("final_answer")
    if view.outcome != "waiting":
        return answer.text if answer is not None else f"There is no answer: {view.why}."
    problems = dict.fromkeys([problem, *(ask.problem for ask in view.waiting)])
    if len(view.waiting) == 1:
        asked = _question_text(view.waiting[0])
    else:
        asked = "\n\n".join(f"`{ask.key}`: {_question_text(ask)}" for ask in view.waiting)
    # Two conversations may say the same; what is asked in them is never the same.
    return "\n\n".join([*filter(None, problems), asked, f"(run {view.run_id})"])


def _question_text(ask: Ask) -> str:
    details = ""
    if ask.kind == "approval" and ask.details is not None:
        details = f"```json\n{json.dumps(ask.details, indent=2, ensure_ascii=False)}\n```"
    return "\n\n".join(filter(None, [*ask.remarks, ask.text, details, _HOW.get(ask.kind, "")]))
