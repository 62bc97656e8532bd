"""One exchange with a team: a request begins a run or continues what waits, and a stream tells it.

How the run of a request is found, how a repetition gets what the first one got, what counts as an
answer, and what is said about progress, questions and failures is here. A protocol is an encoder of
`Part`s: its route makes an `Exchange`, hands what a request says to `begin_or_continue`, and writes
what `parts` tells (`stream`), or the end alone (`wait_for_end`).
"""

import hashlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, cast

from pydantic import JsonValue

from replan.base.errors import InputError, ReplanError
from replan.log.events import types as events
from replan.log.report import RunReport
from replan.runs.asked.requests import is_repeated, name_of_message
from replan.runs.run import Run
from replan.server.callers.identity import Identity, check_role
from replan.server.exchange_texts import reply_text
from replan.server.problems import RefusedError, bad_field
from replan.server.served_teams import ServedTeams
from replan.server.stream import Stream
from replan.server.work import answer_run, begin_run, resume_run
from replan.state.person.answers import Shown, bound_answers, shown_in
from replan.state.questions import Question

_NOTES = ("replan", "server", "exchanges")
_REPLIES = "exchange/"
"""The prefix of notes in the log of a run that say what requests were told, for repetitions."""


class Ended(NamedTuple):
    """The run rests: it is over, it waits for a person, or it was stopped."""

    report: RunReport
    reply: str  # the answer, what is asked, or why there is no answer
    streamed: str  # the pieces of the answer since it was begun, or begun again
    problem: str  # why what was said could not be used
    is_repeated: bool  # whether the request came before

    @property
    def rest(self) -> str:
        """What follows the pieces: what was said cannot be taken back."""
        if self.reply.startswith(self.streamed):
            return self.reply.removeprefix(self.streamed)
        return f"\n\n{self.reply}"


Part = events.Event | Ended | ReplanError
"""What an exchange tells: events, and last its end, or why there is none."""


@dataclass(frozen=True)
class RequestNames:
    """What a request is known by, if it is sent again."""

    history: JsonValue = None  # everything that was said; of a new run, only while that works
    ids: tuple[JsonValue, ...] = ()  # the names that its client gave it
    answer_ids: tuple[JsonValue, ...] = ()  # further ones, if it answers what waits
    content: JsonValue = None  # what it says; with one of its ids, nothing else may be said
    run_id: str = ""  # the id of the run that it begins; one is made up where it is empty

    def all(self, *, answers: bool) -> tuple[JsonValue, ...]:
        """All names under which it is noted, the surest first."""
        ids = (*self.ids, *(self.answer_ids if answers else ()))
        return (*ids, *([self.history] if self.history is not None else ()))


@dataclass(frozen=True)
class Begun:
    """The run that answers a request."""

    run: Run
    after: int = 0  # the number of its last event that is known
    problem: str = ""  # why what was said could not be used
    names: RequestNames = field(default_factory=RequestNames)  # for its repetitions
    has_answered: bool = False  # whether it answered what the run asked
    is_repeated: bool = False  # whether its request came before
    reply: str | None = None  # what that one was told; None if it is told all again
    is_left: bool = False  # whether the run is left waiting, since its client gives the answer up
    told: str = ""  # the request in the log of the run that has what it told the run at work


class WaitingRun(NamedTuple):
    """A run that waits, and what its client was shown of it."""

    report: RunReport
    shown: Shown


NextKey = Callable[[RunReport, str], JsonValue]
"""By what the next request of a client finds a run that waits, given the reply."""


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """The exchanges of a caller with a team by one protocol.

    A run that waits is noted in the store under a key: what its client sends next. A request is
    noted under what it is known by, so that a repetition gets its run.
    """

    served: ServedTeams
    who: Identity
    team: str
    door: str  # the protocol
    next_key: NextKey
    tokens: bool = True  # whether the answer comes in pieces
    replays_events: bool = False  # whether a repetition gets all that happened, not the reply alone

    async def begin_or_continue(  # noqa: PLR0913 - what a door knows of its request
        self,
        key: JsonValue,
        begin: Callable[[], Mapping[str, Any]],
        answers: Callable[[WaitingRun], object],
        names: RequestNames,
        thread_id: str | None = None,
        *,
        conversation: str | None = None,
        tells: Callable[[], str] = str,
    ) -> Begun:
        """Continue the run that waits, or begin one; a repetition gets the run of the first.

        Args:
            key: What waits is found by it, and what works in `conversation`; None looks nothing up.
            begin: Reads what a run begins with.
            answers: Reads the answer to what waits; None leaves it waiting. What it refuses with an
                `InputError` is the problem of the exchange, and what waits is shown again.
            names: What the request is known by.
            thread_id: The thread of a run that begins; a new one if it is None.
            conversation: The name of that in which one run works at a time; None if any number do.
            tells: Reads what the host of a run at work is told; an empty text tells it nothing.

        Raises:
            RefusedError: It may not be answered by this token, or nothing is left of an allowance.
        """
        if conversation is None:
            return await self._begin_or_continue(
                key, begin, answers, names, None, tells, is_alone=False
            )
        # Whatever comes to any server while a run begins has to find that run.
        async with self.served.storage.holds.lock(f"begins/{conversation}"):
            return await self._begin_or_continue(
                key, begin, answers, names, thread_id, tells, is_alone=True
            )

    async def _begin_or_continue(  # noqa: PLR0913 - as its caller
        self,
        key: JsonValue,
        begin: Callable[[], Mapping[str, Any]],
        answers: Callable[[WaitingRun], object],
        names: RequestNames,
        thread_id: str | None,
        tells: Callable[[], str],
        *,
        is_alone: bool,
    ) -> Begun:
        note: Mapping[str, Any] = {} if key is None else await self._note_of(key)
        report = await self._report_in(note)
        is_asking = report is not None and report.outcome == "waiting"
        waiting = WaitingRun(report, note["shown"]) if report and is_asking else None
        # After what waits: what the first one led to is shown after the first one is noted.
        if (again := await self.repeated(names, waiting)) is not None:
            return again
        if report is not None and report.outcome == "running":
            return await self._tell(report, tells, names)
        if report is None or waiting is None:
            run_input, run_id = begin(), names.run_id or self.served.new_id()
            if is_alone:
                # What comes while it works has seen nothing of what it asks.
                await self._note(key, {"run_id": run_id, "shown": {}})
            return await self.begin(run_input, replace(names, run_id=run_id), thread_id)
        try:
            answer = answers(waiting)
        except InputError as error:
            now = await self.from_now(report)
            return replace(now, problem=str(error), names=names, has_answered=True)
        if answer is None:
            await self.served.storage.store.adelete(self._notes_namespace, _digest(key))
            return Begun(self.served.run_of(waiting.report), is_left=True)
        return await self.answer(waiting, answer, names)

    async def begin(
        self,
        run_input: Mapping[str, Any],
        names: RequestNames | None = None,
        thread_id: str | None = None,
        **labels: str,
    ) -> Begun:
        """Begin a run."""
        names = names or RequestNames()
        run_id = names.run_id or self.served.new_id()
        # Before it begins: a repetition may come at any time.
        await self._note_request(names, {"run_id": run_id})
        run = await begin_run(
            self.served,
            self.who,
            self.team,
            run_input,
            run_id=run_id,
            labels={"door": self.door, **labels},
            tokens=self.tokens,
            thread_id=thread_id,
        )
        return Begun(run, names=names)

    async def answer(
        self, waiting: WaitingRun, reply: object, names: RequestNames | None = None
    ) -> Begun:
        """Continue a run that waits; answers that do not fit are its problem."""
        check_role(self.who, "answer")
        report, names = waiting.report, names or RequestNames()
        now = await self.from_now(report)
        try:
            answers = bound_answers(reply, report.pending_questions, shown=waiting.shown)
            # Before it is answered: a repetition may come at any time.
            name = next((_digest(known) for known in names.all(answers=True)), "")
            await self._note_answered(names, now, name)
            run = await answer_run(
                self.served, self.who, report, answers, name=name, tokens=self.tokens
            )
        except InputError as error:
            return replace(now, problem=str(error), names=names, has_answered=True)
        return replace(now, run=run, names=names, has_answered=True)

    async def _tell(
        self, report: RunReport, tells: Callable[[], str], names: RequestNames
    ) -> Begun:
        """Tell the host of a run at work what came while it worked, and follow the run."""
        now = replace(await self.from_now(report), names=names, has_answered=True)
        problem, told = f"The run {report.run_id} worked on another message.", ""
        try:
            if text := tells():
                name, runtime = _digest(names.all(answers=True)[0]), self.served.runtime_of(report)
                await runtime.send_message(report.run_id, text, by=self.who.person, name=name)
                problem, told = "", name_of_message(name)
        except InputError as error:
            problem = f"{problem} {error}"
        # Sent again, it is still no answer to what is asked by then.
        await self._note_answered(names, now)
        return replace(now, problem=problem, told=told)

    async def _told_in_vain(self, begun: Begun) -> str:
        """Why the run did not consider what it was told; empty if it did, or still will."""
        log = self.served.storage.log
        request = await log.request(begun.run.run_id, begun.told) if begun.told else None
        try:
            if request is not None:
                await is_repeated(request, log)
        except InputError as error:
            return str(error)
        return ""

    async def resume(self, report: RunReport, names: RequestNames) -> Begun:
        """Continue a run that was stopped."""
        resume = partial(resume_run, self.served, self.who, report, None)
        return await self.act_and_follow(report, resume, names)

    async def act_and_follow(
        self, report: RunReport, act: Callable[[], Awaitable[object]], names: RequestNames
    ) -> Begun:
        """Do something with a run, and follow it from there."""
        now = await self.from_now(report)
        await act()
        # Once it is done: who is cut off before does it again.
        await self._note_answered(names, now)
        return replace(now, names=names, has_answered=True)

    async def from_now(self, report: RunReport) -> Begun:
        """Follow a run from what happens next."""
        seen_events = len(await self.served.storage.log.events(report.run_id))
        return Begun(self.served.run_of(report), seen_events)

    async def repeated(
        self, names: RequestNames, waiting: WaitingRun | None = None
    ) -> Begun | None:
        """What a request gets that came before: its run, and what it was told.

        Raises:
            RefusedError: The one that came before said something else.
        """
        for name in names.all(answers=True):
            note = await self._note_of(name)
            report = await self._report_in(note)
            if report is None:
                continue
            asks_now = waiting is not None and waiting.report.run_id == report.run_id
            is_known = name != names.history or note.get("answered") or asks_now
            is_cut_off = _is_cut_off(report)
            is_told = "after" in note or (report.outcome == "interrupted" and not is_cut_off)
            # The same history again is a new request, once the first one was told its end.
            if not is_known and report.outcome != "running" and is_told:
                continue
            # Its process may have ended before the run took the answer that came.
            is_at_rest = report.outcome not in ("running", "interrupted")
            request = note.get("request") if is_at_rest else ""
            if request and not await self.served.storage.log.is_taken(report.run_id, request):
                continue
            if note.get("content", _digest(names.content)) != _digest(names.content):
                detail = "Another request had this name, and said something else."
                detail += " Give this one a name of its own."
                raise RefusedError(409, "name_taken", detail)
            run = self.served.run_of(report)
            if is_cut_off:
                run = await resume_run(self.served, self.who, report, None)
            return Begun(
                run,
                int(note.get("after", 0)),
                names=names,
                has_answered=bool(note.get("answered")),
                is_repeated=True,
                reply=await self._reply_before(report.run_id, name),
            )
        return None

    async def _report_in(self, note: Mapping[str, Any]) -> RunReport | None:
        """The run of a note, if it is there and the caller may see it."""
        run_id = str(note.get("run_id", ""))
        record = await self.served.storage.runs.get(run_id) if run_id else None
        if record is None or not self.served.is_seen(record, self.who):
            return None
        return await self.served.runtime_of(record).get(run_id)

    async def knows(self, key: JsonValue) -> bool:
        """Whether a request came under a key before."""
        return bool(await self._note_of(key))

    async def shown(self, key: JsonValue) -> Shown:
        """What a client was shown last under a key."""
        return cast("Shown", (await self._note_of(key)).get("shown", {}))

    async def show(self, report: RunReport, reply: str = "") -> None:
        """Note what a client is shown: an answer counts for nothing else, and is found by it."""
        if report.outcome == "waiting":
            value = {"run_id": report.run_id, "shown": shown_in(report.pending_questions)}
            key = self.next_key(report, reply)
            if await self._note_of(key) != value:
                await self._note(key, value)

    async def stream(
        self, begin: Callable[[], Awaitable[Begun]], lines: Callable[[Begun], AsyncGenerator[str]]
    ) -> Stream:
        """Answer with server-sent events; what cannot be begun is refused, and is no stream."""
        seat = self.served.stream_seat(self.who)
        begun = await begin()
        return Stream(lines(begun), self.served.beat, seat)

    async def events(self, begun: Begun) -> AsyncGenerator[events.Event]:
        """What happens in the run until it rests; nothing, if its client was told before."""
        if begun.reply is None:
            async with aclosing(begun.run.events(after=begun.after, tokens=self.tokens)) as told:
                async for event in told:
                    yield event

    async def parts(self, begun: Begun) -> AsyncGenerator[Part]:
        """What happens until the run rests, and last its end, or why there is none."""
        streamed = ""
        try:
            async with aclosing(self.events(begun)) as told:
                async for event in told:
                    match event:
                        case events.AnswerToken(text=text):
                            streamed += text
                        case events.AnswerReset():
                            streamed = ""
                        case _:
                            pass
                    yield event
            yield await self.wait_for_end(begun, streamed)
        except ReplanError as error:
            yield error

    async def wait_for_end(self, begun: Begun, streamed: str = "") -> Ended:
        """Wait until the run rests, and note what its client is told."""
        if begun.reply is not None:
            report = await begun.run.report()
            return Ended(report, begun.reply, streamed, begun.problem, begun.is_repeated)
        await begun.run
        report = await begun.run.report()
        begun = replace(begun, problem=begun.problem or await self._told_in_vain(begun))
        reply = reply_text(report, begun.problem)
        # For its repetitions; before anything new is shown.
        # What was refused may be said again once something else is shown.
        is_refused = begun.problem and report.outcome == "waiting"
        if report.outcome != "interrupted" and not is_refused:
            await self._note_reply(begun, reply)
        await self.show(report, reply)
        return Ended(report, reply, streamed, begun.problem, begun.is_repeated)

    def conversation(self, name: str) -> str | None:
        """What a conversation of this caller with the team is called; None if it has no name."""
        if not name:
            return None
        return f"{self.door}-{_digest([self.who.tenant, self.who.name, self.team, name])}"

    async def _note_answered(self, names: RequestNames, now: Begun, request: str = "") -> None:
        value = {"run_id": now.run.run_id, "after": now.after, "answered": True}
        await self._note_request(names, {**value, "request": request})

    async def _note_request(self, names: RequestNames, value: dict[str, Any]) -> None:
        value = {**value, "content": _digest(names.content)}
        for name in names.all(answers=bool(value.get("answered"))):
            await self._note(name, value)

    async def _note_reply(self, begun: Begun, reply: str) -> None:
        """Note what a client is told; that its run was interrupted is no end of it."""
        run_id = begun.run.run_id
        if not self.replays_events:
            for name in begun.names.all(answers=begun.has_answered):
                # In the log of the run, with which it is removed.
                await self.served.storage.log.note(run_id, _REPLIES + _digest(name), reply)
        value = {"run_id": run_id, "after": begun.after, "answered": begun.has_answered}
        await self._note_request(begun.names, value)

    async def _reply_before(self, run_id: str, name: JsonValue) -> str | None:
        """What a request was told by its run; None if it was told nothing, or all is told again."""
        if self.replays_events:
            return None
        key = _REPLIES + _digest(name)
        return cast("str | None", (await self.served.storage.log.notes(run_id, key)).get(key))

    async def _note(self, name: JsonValue, value: dict[str, Any]) -> None:
        await self.served.storage.store.aput(
            self._notes_namespace, _digest(name), value, index=False
        )

    async def _note_of(self, name: JsonValue) -> Mapping[str, Any]:
        item = await self.served.storage.store.aget(self._notes_namespace, _digest(name))
        return item.value if item is not None else {}

    @property
    def _notes_namespace(self) -> tuple[str, ...]:
        return (*_NOTES, f"t-{self.who.tenant}", f"n-{self.who.name}", _digest(self.team))


def _is_cut_off(report: RunReport) -> bool:
    """Whether a run rests that nobody stopped: its server ended, or it broke off."""
    stopped = report.fold.stopped
    is_stopped = not report.is_killed and stopped is not None and bool(stopped.by)
    return report.outcome == "interrupted" and not is_stopped


def _digest(value: JsonValue) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def place_of(ask: Question) -> str:
    """The key of an answer: the question and its shown content."""
    return f"{ask.key} {ask.fingerprint}".strip()


def answers_at(
    answers: Mapping[str, JsonValue], asks: Sequence[Question], field: str
) -> dict[str, JsonValue]:
    """Answers by the places of what they answer (`place_of`), each bound to exactly that.

    Args:
        answers: The answers.
        asks: What is asked.
        field: The field of a request that has them; `{}` is the number of the answer.

    Raises:
        RefusedError: The run does not wait for one of them.
    """
    ask_at = {place_of(ask): ask for ask in asks}
    for number, place in enumerate(answers):
        if place not in ask_at:
            fix = f"Give one of: {', '.join(ask_at)}." if ask_at else "Nothing is asked now."
            raise bad_field(
                field.format(number), place, "the run does not wait for this answer", fix
            )
    return {ask_at[place].key: ask_at[place].bound(answer) for place, answer in answers.items()}
