"""Conversations of chat clients: the run that waits in one, and what is said about it."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import BaseMessage
from pydantic import JsonValue

from replan.errors import InputError
from replan.events import types as events
from replan.log.report import RunReport
from replan.log.statuses import end_of
from replan.runs.asked.pending import PendingQuestion
from replan.runs.run import Run
from replan.server.callers.identity import Identity, check_role
from replan.server.problems import RefusedError
from replan.server.served_teams import ServedTeams
from replan.server.work import answer_run, begin_run
from replan.state.person.answers import Shown, bound_answers, shown_in
from replan.state.questions import Question

_PLACE = ("replan", "server", "chats")
_HOW = {
    "plan": "Answer `approve`, `reject: WHY`, or with the changed plan",
    "approval": "Answer `approve`, or `reject: WHY`",
}


@dataclass(frozen=True)
class Request:
    """What a request is known by, if it is sent again."""

    history: JsonValue = None  # everything that was said; of a new run, only while that works
    ids: tuple[JsonValue, ...] = ()  # the names that its client gave it

    @property
    def names(self) -> tuple[JsonValue, ...]:
        """All of it, the surest first."""
        return (*self.ids, *([self.history] if self.history is not None else ()))


NEW = Request()
"""A request that is never a repetition."""


@dataclass(frozen=True)
class Begun:
    """The run that answers a request."""

    run: Run
    after: int = 0  # the number of its last event that is known
    problem: str = ""  # why what was said could not be used
    request: Request = NEW  # what it is known by, for its repetitions
    has_answered: bool = False  # whether it answered what the run asked
    reply: str | None = None  # what a request that came before was told


@dataclass(frozen=True)
class Conversations:
    """The conversations of a token with a team.

    A run that waits is noted in the store under a key: what its client sends next. A request is
    noted under what it is known by, so that a repetition gets its run.
    """

    served: ServedTeams
    who: Identity
    team: str

    async def begin(
        self,
        door: str,
        messages: Sequence[BaseMessage],
        thread_id: str | None = None,
        request: Request = NEW,
    ) -> Begun:
        """Begin a run.

        Raises:
            RefusedError: Nothing is left of an allowance.
        """
        options: Any = {"run_id": self.served.new_id(), "labels": {"door": door}}
        given = {"messages": list(messages)}
        options["thread_id"] = thread_id
        # Before it begins: a repetition may come at any time.
        await self._note(request, {"run_id": options["run_id"]})
        run = await begin_run(self.served, self.who, self.team, given, tokens=True, **options)
        return Begun(run, request=request)

    async def answer(self, view: RunReport, said: object, shown: Shown, request: Request) -> Begun:
        """Continue a run that waits; answers that do not fit are its problem.

        Raises:
            RefusedError: It may not be answered by this token, or nothing is left of an allowance.
        """
        check_role(self.who, "answer")
        known = len(await self.served.storage.log.events(view.run_id))
        try:
            answers = bound_answers(said, view.pending_questions, shown=shown)
            # Before it continues: a repetition may come at any time.
            await self._note(request, {"run_id": view.run_id, "after": known, "answered": True})
            run = await answer_run(self.served, self.who, view, answers, tokens=True)
        except InputError as error:
            run = Run(self.served.runtime_of(view), view.run_id)
            return Begun(run, known, str(error))
        except RefusedError:
            # Nothing was answered.
            for name in request.names:
                await self.forget(name)
            raise
        return Begun(run, known, request=request, has_answered=True)

    async def repeated(self, request: Request) -> Begun | None:
        """What a request gets that came before: its run, and what it was told.

        Ask this after `waiting`: what the first one led to is shown after the first one is noted.
        """
        for name in request.names:
            item = await self.served.storage.store.aget(self._place, _digest(name))
            noted: Mapping[str, Any] = item.value if item is not None else {}
            run_id = str(noted.get("run_id", ""))
            record = await self.served.storage.runs.get(run_id) if run_id else None
            if record is None or not self.served.is_seen(record, self.who):
                continue
            runtime = self.served.runtime_of(record)
            is_same = name != request.history or bool(noted.get("answered"))
            # The same history again is a new request, once the run of the first one rests.
            if is_same or (await runtime.get(run_id)).outcome == "running":
                run = Run(runtime, run_id)
                return Begun(run, int(noted.get("after", 0)), reply=noted.get("reply"))
        return None

    async def told(self, begun: Begun, reply: str | None = None) -> None:
        """Note what a request is told, for its repetitions; before anything new is shown."""
        value = {"run_id": begun.run.run_id, "after": begun.after, "answered": begun.has_answered}
        await self._note(begun.request, {**value, "reply": reply})

    async def waiting(self, key: JsonValue) -> tuple[RunReport, Shown] | None:
        """The run of a conversation that waits, with what it showed."""
        item = await self.served.storage.store.aget(self._place, _digest(key))
        run_id = str(item.value["run_id"]) if item is not None else ""
        record = await self.served.storage.runs.get(run_id) if run_id else None
        if item is None or record is None or not self.served.is_seen(record, self.who):
            return None
        view = await self.served.runtime_of(record).get(run_id)
        shown = cast("Shown", item.value["shown"])
        return (view, shown) if view.outcome == "waiting" else None

    async def note(self, key: JsonValue, view: RunReport) -> None:
        """Note a run that waits, so that it is found again, and what it shows now."""
        if view.outcome == "waiting":
            value = {"run_id": view.run_id, "shown": shown_in(view.pending_questions)}
            await self.served.storage.store.aput(self._place, _digest(key), value, index=False)

    async def forget(self, key: JsonValue) -> None:
        """Leave a run waiting for another person."""
        await self.served.storage.store.adelete(self._place, _digest(key))

    async def _note(self, request: Request, value: dict[str, Any]) -> None:
        for name in request.names:
            await self.served.storage.store.aput(self._place, _digest(name), value, index=False)

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


def place_of(ask: Question | PendingQuestion) -> str:
    """The key of an answer: the question and its shown content."""
    return f"{ask.key} {ask.fingerprint}".strip()


def progress_line(event: events.Event) -> str:
    """A line about the course of the plan; empty for an event that does not change it."""
    match event:
        case events.PlanCreated():
            return "A plan was made.\n"
        case events.PlanUpdated():
            return "The plan was revised.\n"
        case events.SpecialistInvoked():
            return f"Step {event.step_id} @{event.specialist}: {event.task}\n"
        case events.SpecialistCompleted():
            return f"Step {event.step_id} @{event.specialist}: {end_of(event)}\n"
        case events.SpecialistRetried():
            return f"Step {event.step_id} @{event.specialist} is done again.\n"
        case _:
            return ""


def text_in(event: events.Event) -> str:
    """The piece of the answer that an event is; empty for any other."""
    return event.text if isinstance(event, events.AnswerToken) else ""


def reply_text(view: RunReport, problem: str = "") -> str:
    """The answer of a run, its questions, or the reason for no answer."""
    if view.outcome != "waiting":
        return view.answer or f"There is no answer: {view.reason}."
    problems = dict.fromkeys([problem, *(ask.problem for ask in view.pending_questions)])
    if len(view.pending_questions) == 1:
        asked = _question_text(view.pending_questions[0])
    else:
        asked = "\n\n".join(f"`{ask.key}`: {_question_text(ask)}" for ask in view.pending_questions)
    # Two conversations may say the same; what is asked in them is never the same.
    return "\n\n".join([*filter(None, problems), asked, f"(run {view.run_id})"])


def _question_text(ask: Question) -> str:
    details = ""
    if ask.kind == "approval" and ask.details is not None:
        details = f"```json\n{json.dumps(ask.details, indent=2, ensure_ascii=False)}\n```"
    how = f"{_HOW[ask.kind]}; by key: `{ask.key}=approve`." if ask.kind in _HOW else ""
    return "\n\n".join(filter(None, [*ask.remarks, ask.text, details, how]))
