"""The run service: start, follow, answer, stop and look at runs by their ids.

A terminal, a server and a worker use it. If another process works on a run, a request to the run is
a row, which the owner reads within a second. If no process works on the run, the asking process
takes it.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import aclosing, nullcontext, suppress
from dataclasses import replace
from typing import Any, Unpack, cast

from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict
from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot
from pydantic import JsonValue

from replan.calling import Input, alone, check_input, loosened, shapes_of, team_of
from replan.errors import InputError, StorageError, ThreadBusyError, UsageError
from replan.plan.markdown.document import PlanDocument
from replan.plan.model import TaskPlan
from replan.ports.run_book import Request, RequestKind, RunRecord
from replan.ports.storage import Storage
from replan.runs.asks import answers_by_key, open_asks, state_at_rest
from replan.runs.correcting import (
    Correction,
    begun_anew,
    check,
    check_newest,
    corrected,
    is_over,
    refuse_repeats,
    repeated_by,
)
from replan.runs.event_log import EventLog, RunEvent, run_event
from replan.runs.labels import checked_labels
from replan.runs.looking import RunView, config_of, seen, snapshot_of
from replan.runs.requests import BEAT, answer_row
from replan.runs.result import RunResult, result_of
from replan.runs.running import raise_limits
from replan.runs.stopping import RunStopped
from replan.runs.work import Bench, Errand, Following, Work
from replan.state.channels import conversation
from replan.state.enhanced import EnhancedState, settings_of
from replan.state.limits import RunSettings
from replan.steps.kept import note_kept

_TITLE = 200
"""Characters at most of a title that is taken from the request."""

logger = logging.getLogger(__name__)


class Run:
    """A run, in this process or another one. Awaiting it waits until no process works on it.

    Attributes:
        run_id: The run.
    """

    def __init__(
        self, runtime: "Runtime", run_id: str, task: "asyncio.Task[RunResult] | None" = None
    ) -> None:
        self.run_id = run_id
        self._runtime = runtime
        self._task = task

    def __await__(self) -> Generator[Any, None, RunResult]:
        return self.result().__await__()

    async def result(self) -> RunResult:
        """Wait until the run is over, waits for a person or was stopped, and return its result."""
        if self._task is None:
            return await self._runtime.rested(self.run_id)
        try:
            # Who waits for it and is cancelled does not take it from the others.
            return await asyncio.shield(self._task)
        finally:
            if self._task.done():
                await self._runtime.handed_out(self.run_id)

    def events(self, *, after: int = 0, tokens: bool = False) -> AsyncGenerator[RunEvent]:
        """Yield the events of the run; see `Runtime.events`."""
        return self._runtime.events(self.run_id, after=after, tokens=tokens)

    async def stop(self, *, by: str = "") -> None:
        """Stop the run; see `Runtime.stop`."""
        await self._runtime.stop(self.run_id, by=by)

    async def answer(self, answers: object, *, by: str = "") -> "Run":
        """Answer questions of the run; see `Runtime.answer`."""
        return await self._runtime.answer(self.run_id, answers, by=by)

    async def look(self) -> RunView:
        """Return the status of the run; see `Runtime.look`."""
        return await self._runtime.look(self.run_id)


class StartOptions(Following, total=False):
    """The options of a new run; see `Runtime.start`."""

    settings: RunSettings | None
    config: RunnableConfig | None
    run_id: str | None
    thread_id: str | None
    title: str
    order: JsonValue
    labels: Mapping[str, str] | None


class CorrectionOptions(Following, total=False):
    """The options of a correction of a run; see `Runtime.retry`."""

    settings: RunSettings | None
    config: RunnableConfig | None
    repeat_effects: bool
    run_id: str | None
    order: JsonValue


class Runtime:
    """The runs of one team in one storage; `open_runtime` opens it."""

    def __init__(self, bench: Bench) -> None:
        """Prepare; `open_runtime` does it."""
        self._bench = bench
        self._works: dict[str, tuple[Work, asyncio.Task[RunResult]]] = {}
        self._reading: asyncio.Task[None] | None = None

    @property
    def graph(self) -> Any:
        """The team's compiled LangGraph graph."""
        return self._bench.graph

    @property
    def storage(self) -> Storage | None:
        """The storage of the runs; None if they are not kept."""
        return self._bench.storage

    async def run(
        self,
        input: Input,  # noqa: A002 - LangGraph calls it so
        **options: Unpack[StartOptions],
    ) -> RunResult:
        """Run a request until it is over, waits for a person or is stopped; see `start`."""
        return await (await self.start(input, **options))

    async def start(  # noqa: PLR0913 - what a run can be told
        self,
        input: Input,  # noqa: A002 - LangGraph calls it so
        *,
        settings: RunSettings | None = None,
        config: RunnableConfig | None = None,
        run_id: str | None = None,
        thread_id: str | None = None,
        title: str = "",
        order: JsonValue = None,
        labels: Mapping[str, str] | None = None,
        **following: Unpack[Following],
    ) -> Run:
        """Begin a run, and return it at once.

        Args:
            input: The request as a text, or a mapping with `messages` and optionally `plan`.
            settings: The settings of this run; fields that are not set keep the team's values.
            config: LangChain's configuration, for callbacks, tags and metadata.
            run_id: The run's id; by default a new one. The same input under the same id continues
                the run, and does nothing more if the run is over.
            thread_id: The conversation of the run; by default a new one.
            title: A title for lists; by default the beginning of the request.
            order: The data that is needed to build the same graph again; JSON without secrets.
            labels: Labels for finding the run, such as `{"user": "eva"}`; no secrets, because
                storage does not encrypt labels.
            following: `tokens=True` yields texts piece by piece, `heard` is called with each event
                once it is on record, and `stop` is an `asyncio.Event` that stops the run.

        Raises:
            InputError: It says nothing, or its plan names unknown specialists.
            PlanDocumentError: Its plan has mistakes.
            ThreadBusyError: Another run works on the thread.
            StorageError: It cannot be kept.
        """
        given = _asked(input)
        check_input(self._bench.graph, given)
        run_id = run_id or self._bench.new_id()
        now = self._bench.clock()
        record = RunRecord(
            run_id=run_id,
            thread_id=thread_id or run_id,
            title=title or _title_of(given),
            order=order if order is not None else _kept_input(given),
            started_at=now,
            updated_at=now,
            labels=checked_labels(labels),
        )
        errand = Errand(
            record=record, input=given, settings=settings, config=config, following=following
        )
        return await self._started(errand)

    async def _started(self, errand: Errand) -> Run:
        known = await self._bench.book.get(errand.run_id)
        if known is not None:
            errand = replace(errand, record=known, goes_on=True)
        return await self._known(self._begun(errand, is_new=known is None))

    async def resume(
        self,
        run_id: str,
        *,
        settings: RunSettings | None = None,
        config: RunnableConfig | None = None,
        by: str = "",
        **following: Unpack[Following],
    ) -> RunResult:
        """Resume a run that was stopped or killed, or that a limit ended; finished work is kept.

        A waiting run keeps waiting until it is answered. A finished run returns its result.

        Args:
            run_id: The run.
            settings: Changed settings; a limit that ended the run must be raised.
            config: LangChain's configuration, for callbacks, tags and metadata.
            by: The person who resumes it, and raises the limit.
            following: How to follow and stop the run; see `start`.

        Raises:
            InputError: There is no such run, or runs are not kept.
            ThreadBusyError: Another process works on the run.
        """
        record = await self._kept(run_id)
        snapshot = await snapshot_of(self._bench.graph, record)
        state = cast("EnhancedState", snapshot.values)
        is_over = state.get("is_completed") and not set(snapshot.next) - {"summarise"}
        if is_over and (settings is not None or not snapshot.next):
            if settings is None or not state.get("limit_reached"):
                return self._result(state)
            at = config_of(record.thread_id)
            await raise_limits(
                self._bench.graph, settings=settings, config=at, by=by or "raise_limits"
            )
            settings = None
        if settings is None and await self._only_waits(run_id, snapshot):
            return self._result(state_at_rest(snapshot))
        begins = not snapshot.values and not snapshot.tasks
        given = _input_again(record) if begins else None
        errand = Errand(
            record=record,
            input=given,
            settings=settings,
            config=config,
            following=following,
            goes_on=True,
            by=by,
        )
        return await self._begun(errand)

    async def answer(
        self,
        run_id: str,
        answers: object,
        *,
        settings: RunSettings | None = None,
        by: str = "",
        **following: Unpack[Following],
    ) -> Run:
        """Answer questions of a run. The run continues, here or in the process that works on it.

        Args:
            run_id: The run.
            answers: One answer, or a mapping from keys of `look(run_id).waiting` to answers. For a
                plan or a tool call, `approve`, `reject: WHY` or a `Decision`.
            settings: Changed settings, if the run continues here.
            by: The person who answers.
            following: How to follow and stop the run, if it continues here; see `start`.

        Raises:
            InputError: There is no such run, it asks nothing, or the answer fits no question.
        """
        record = await self._kept(run_id)
        asks = (await self.look(run_id)).waiting
        given = answers_by_key(answers, asks)
        rows: dict[str, JsonValue] = {
            ask.key: answer_row(ask, given[ask.key]) for ask in asks if ask.key in given
        }
        await self._ask(run_id, "answer", by, rows)
        work, task = self._works.get(run_id, (None, None))
        if work is not None and task is not None and work.is_resting:
            await asyncio.wait({task})
        errand = Errand(
            record=record, settings=settings, goes_on=True, gives_way=True, following=following
        )
        return await self._known(self._begun(errand))

    async def retry(
        self, run: str, step: int, /, *, by: str = "", **options: Unpack[CorrectionOptions]
    ) -> Run:
        """Repeat a step and its dependents, and continue the run.

        A run that waits, was stopped or was ended by a limit continues, and the plan's history
        records this. A finished run is not changed: a new run begins from its document, and keeps
        the finished steps that do not depend on this step.

        Args:
            run: The run.
            step: The step.
            by: The person who requests it.
            options: `settings` are changed settings; they must raise a limit that leaves no room.
                `repeat_effects=True` lets a new run repeat unsafe work without asking. `run_id` and
                `order` belong to a new run. Other options are as in `start`.

        Raises:
            InputError: There is no such run or step, the step is not settled yet, a limit leaves
                no room, or work with effects would be done once more.
            ThreadBusyError: Somebody works on the run.
        """
        return await self._corrected(run, Correction(action="retry", step=step, by=by), options)

    async def skip(
        self, run: str, step: int, /, *, by: str = "", **options: Unpack[CorrectionOptions]
    ) -> Run:
        """Skip a step that is not done, and continue: its dependents run without it.

        The answer lists the step under "Not done". As in `retry`, the run or a new run continues.

        Args:
            run: The run.
            step: The step.
            by: The person who requests it.
            options: As in `retry`.

        Raises:
            InputError: There is no such run or step, the step is settled well, or a limit leaves
                no room.
            ThreadBusyError: Somebody works on the run.
        """
        return await self._corrected(run, Correction(action="skip", step=step, by=by), options)

    async def _corrected(
        self, run_id: str, correction: Correction, options: CorrectionOptions
    ) -> Run:
        record = await self._kept(run_id)
        view = await self._seen(record)
        if is_over(view.state):
            return await self._started(await self._anew(correction, view, options))
        async with alone(self._bench.graph, config_of(record.thread_id)) as owner:
            with owner.at_work() if owner else nullcontext():
                errand = await self._in_place(correction, record, options)
        return await self._started(errand)

    async def _in_place(
        self, correction: Correction, record: RunRecord, options: CorrectionOptions
    ) -> Errand:
        """Correct a run that goes on; all of it is one write."""
        graph, config = cast("Any", self._bench.graph), config_of(record.thread_id)
        view, settings = await self._seen(record), options.get("settings")
        check(correction, view)
        check_newest(await graph.aget_state(config), record.run_id)
        so_far = view.plan or TaskPlan()
        now = self._bench.clock()
        update, told = corrected(correction, view.state, so_far, settings, now)
        if settings is not None and "settings" in update:
            old, by = settings_of(view.state), correction.by or correction.action
            update["warnings"] = loosened(self._bench.graph, old, update["settings"], by)
            settings = None
        await graph.aupdate_state(config, update, as_node="plan_update")
        return Errand(
            record=record,
            settings=settings,
            config=options.get("config"),
            following=_following(options),
            by=correction.by,
            told=told,
        )

    async def _anew(
        self, correction: Correction, view: RunView, options: CorrectionOptions
    ) -> Errand:
        """What a new run is called with that goes on from one that is over."""
        check(correction, view)
        journal = cast("Storage", self._bench.storage).journal
        if not options.get("repeat_effects"):
            team = team_of(self._bench.graph)
            refuse_repeats(await repeated_by(correction, view, team, journal))
        if not await journal.results(view.run_id):
            # One in memory has forgotten them; the state has them whole.
            whole = {
                **view.state.get("kept_results", {}),
                **view.state.get("current_specialist_results", {}),
            }
            await note_kept(view.run_id, whole.values(), journal)
        given, now = begun_anew(correction, view), self._bench.clock()
        run_id, order = options.get("run_id") or self._bench.new_id(), options.get("order")
        if order is None:
            old = view.record.order if isinstance(view.record.order, dict) else {}
            order = {**old, **cast("dict[str, JsonValue]", _kept_input(given))}
        return Errand(
            record=view.record.replace(
                run_id=run_id, thread_id=run_id, order=order, started_at=now, updated_at=now
            ),
            input=given,
            settings=settings_of(view.state).overridden_by(options.get("settings")),
            config=options.get("config"),
            following=_following(options),
            told=(correction.event(run_id, view.run_id),),
        )

    async def stop(self, run_id: str, *, by: str = "", at_once: bool = False) -> None:
        """Stop a run gracefully: no new step starts, and running steps get the grace to end.

        The run can be resumed. The process that works on it stops it within a second. If none does,
        nothing is left to stop.

        Args:
            run_id: The run.
            by: The person who stops it.
            at_once: Whether steps that run here get no grace.

        Raises:
            InputError: There is no such run.
        """
        if work := self._begun_here(run_id):
            # Whatever becomes of the storage.
            work.stop(at_once=at_once)
        record = await self._record(run_id)
        if work is None and record.outcome != "running" and not (await self._seen(record)).is_held:
            return
        request = await self._ask(run_id, "stop", by, {})
        if work is not None:
            return
        view = await self.look(run_id)
        if view.is_held:
            return
        await self._bench.book.take_requests([request], self._bench.clock())
        if record.outcome == "running":
            outcome = cast("Any", view.outcome)
            await self._bench.book.update(run_id, outcome, self._bench.clock())

    async def events(
        self, run_id: str, *, after: int = 0, tokens: bool = False
    ) -> AsyncGenerator[RunEvent]:
        """Yield the events of a run after a number, past and new, until no process works on it.

        Without storage the events of a run are dropped when its result was returned.

        Args:
            run_id: The run.
            after: The number of the last known event.
            tokens: Whether to yield pieces of text, too, if this runtime started the run with
                `tokens`.

        Raises:
            InputError: There is no such run.
        """
        await self._record(run_id)
        if work := self._begun_here(run_id):
            async with aclosing(work.log.follow(after, tokens=tokens)) as following:
                async for event in following:
                    yield event
            return
        is_worked_on = True
        while is_worked_on:
            # Looked at before the events are read: what comes to rest meanwhile told them all.
            is_worked_on = await self._is_worked_on(run_id)
            for logged in await self._bench.book.events(run_id, after):
                after = logged.seq
                yield run_event(run_id, logged)
            if is_worked_on:
                await asyncio.sleep(BEAT)

    async def look(self, run_id: str) -> RunView:
        """Return the status of a run, its plan, and what it waits for.

        Raises:
            InputError: There is no such run.
        """
        return await self._seen(await self._record(run_id))

    async def text(self, run_id: str, ref: str) -> str | None:
        """Return a long text of an event, to which a `ref` in its `details` points.

        None if the text is not kept any more (`keep_days`), or does not exist.

        Raises:
            InputError: There is no such run.
        """
        await self._record(run_id)
        return await self._bench.book.text(run_id, ref)

    async def runs(
        self, most: int = 20, *, labels: Mapping[str, str] | None = None
    ) -> list[RunView]:
        """Return the latest runs, the newest first."""
        found = await self._bench.book.recent(most, checked_labels(labels))
        return [await self._seen(each) for each in found]

    async def rested(self, run_id: str) -> RunResult:
        """Wait until no process works on a run, and return its result.

        Raises:
            InputError: There is no such run.
        """
        while run_id in self._works or await self._is_worked_on(run_id):
            if run_id in self._works:
                await asyncio.wait({self._works[run_id][1]})
            else:
                await asyncio.sleep(BEAT)
        return await self._found(run_id)

    async def handed_out(self, run_id: str) -> None:
        """Forget a run whose result was handed out, where nothing is kept."""
        if self._bench.storage is None:
            await self._bench.book.remove(run_id)

    async def close(self) -> None:
        """Stop what runs here, and wait until it rests; it can go on later."""
        for work, _ in self._works.values():
            work.stop()
        if tasks := [task for _, task in self._works.values()]:
            await asyncio.wait(tasks)
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})

    def _begun(self, errand: Errand, *, is_new: bool = False) -> Run:
        """Work on a run beside everything else, unless it is worked on here already."""
        if errand.run_id in self._works:
            return Run(self, errand.run_id, self._works[errand.run_id][1])
        heard = errand.following.get("heard")
        keeps_texts = self._bench.storage is not None
        log = EventLog(
            self._bench.book, errand.run_id, self._bench.clock, heard, keeps_texts=keeps_texts
        )
        work = Work(errand, self._bench, log)
        doing = self._shared(work) if errand.gives_way else self._own(work, is_new=is_new)
        task = asyncio.ensure_future(doing)
        self._works[errand.run_id] = work, task
        task.add_done_callback(lambda _: self._ended(errand.run_id))
        if self._bench.storage is not None and self._reading is None:
            self._reading = asyncio.ensure_future(self._read())
        return Run(self, errand.run_id, task)

    async def _known(self, run: Run) -> Run:
        """Wait until a run has begun here, or somebody else turns out to work on it."""
        work, task = self._works[run.run_id]
        known = asyncio.ensure_future(work.is_known.wait())
        try:
            await asyncio.wait({known, task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            known.cancel()
        if not work.is_known.is_set():
            await task
        return run

    def _ended(self, run_id: str) -> None:
        _, task = self._works.pop(run_id)
        if not task.cancelled() and (error := task.exception()):
            # Who waits for the run is told; nobody may.
            logger.info("run broke off", extra={"run_id": run_id, "error": type(error).__name__})

    async def _own(self, work: Work, *, is_new: bool) -> RunResult:
        try:
            return await work.done()
        except UsageError:
            if is_new and work.has_begun:
                # Nothing was started that anybody could go on with.
                await self._bench.book.remove(work.errand.run_id)
            raise

    async def _shared(self, work: Work) -> RunResult:
        """Work on a run, unless its owner heeds what is asked of it, or was told to stop."""
        run_id, is_heeded = work.errand.run_id, False
        while not is_heeded:
            try:
                return await work.done()
            except RunStopped:
                break
            except ThreadBusyError:
                work.is_known.set()
                is_heeded = not await self._bench.book.requests([run_id])
        while await self._is_worked_on(run_id):  # noqa: ASYNC110 - by another process
            await asyncio.sleep(BEAT)
        return await self._found(run_id)

    async def _found(self, run_id: str) -> RunResult:
        """The result of a run that rests, from what is kept of it."""
        view = await self.look(run_id)
        snapshot = await snapshot_of(self._bench.graph, view.record)
        return self._result({**state_at_rest(snapshot), "outcome": view.outcome})

    def _result(self, state: Mapping[str, Any]) -> RunResult:
        return result_of(cast("EnhancedState", state), shapes=shapes_of(self._bench.graph))

    async def _only_waits(self, run_id: str, snapshot: StateSnapshot) -> bool:
        """Whether nothing can go on before a person answers, and nobody has."""
        storage = cast("Storage", self._bench.storage)
        asks = await open_asks(snapshot, storage.journal)
        if not asks or not all(ask.interrupt for ask in asks):
            return False
        return not (await self._is_worked_on(run_id) or await storage.runs.requests([run_id]))

    async def _read(self) -> None:
        """Read what others ask of the runs that are worked on here, as long as there are any."""
        while self._works:
            await asyncio.sleep(BEAT)
            with suppress(StorageError):  # the run itself tells of it
                here = [run_id for run_id in self._works if self._begun_here(run_id)]
                for request in await self._bench.book.requests(here):
                    await self._heed(request)
        self._reading = None

    async def _heed(self, request: Request) -> None:
        if work := self._begun_here(request.run_id):
            await work.heed(request)

    def _begun_here(self, run_id: str) -> Work | None:
        """The work on a run whose thread is held here; another one may still be its owner."""
        work, _ = self._works.get(run_id, (None, None))
        return work if work is not None and work.has_begun else None

    async def _ask(
        self, run_id: str, kind: RequestKind, by: str, answers: dict[str, JsonValue]
    ) -> Request:
        request = Request(
            run_id=run_id,
            name=self._bench.new_id(),
            kind=kind,
            at=self._bench.clock(),
            by=by,
            answers=answers,
        )
        await self._bench.book.add_request(request)
        logger.info("asked of a run", extra={"run_id": run_id, "kind": kind, "by": by})
        await self._heed(request)
        return request

    async def _record(self, run_id: str) -> RunRecord:
        record = await self._bench.book.get(run_id)
        if record is None:
            raise InputError(f"There is no run '{run_id}' here.")
        return record

    async def _kept(self, run_id: str) -> RunRecord:
        if self._bench.storage is None:
            raise InputError(
                "Without storage no run outlives its call. Give `storage` to `open_runtime`, for "
                "example `storage='runs.db'`, or ':memory:' for as long as the process lives."
            )
        return await self._record(run_id)

    async def _seen(self, record: RunRecord) -> RunView:
        if self._bench.storage is None:
            is_held, heard_at = record.run_id in self._works, record.updated_at
            return RunView(record=record, heard_at=heard_at, state={}, is_held=is_held)
        return await seen(self._bench.graph, self._bench.storage, record, self._bench.clock())

    async def _is_worked_on(self, run_id: str) -> bool:
        record = await self._record(run_id)
        if record.outcome != "running" or self._bench.storage is None:
            return False
        return await self._bench.storage.holds.is_held(record.thread_id)


def _following(options: CorrectionOptions) -> Following:
    names = Following.__annotations__
    return cast("Following", {name: each for name, each in options.items() if name in names})


def _asked(given: Input) -> dict[str, Any]:
    """The input of a new run as a mapping."""
    if isinstance(given, str):
        return {"messages": [("user", given)]}
    if not isinstance(given, Mapping):
        raise InputError(
            "A run begins with a text, or with a mapping that has `messages` or `plan`. "
            "Go on with one that was begun by `resume` or `answer`."
        )
    return dict(given)


def _title_of(given: Mapping[str, Any]) -> str:
    plan = given.get("plan")
    heading = PlanDocument.recover(plan).plan.title if isinstance(plan, str) else ""
    return " ".join((heading or _said(given)).split())[:_TITLE]


def _said(given: Mapping[str, Any]) -> str:
    return str(_messages(given)[-1].content) if given.get("messages") else ""


def _messages(given: Mapping[str, Any]) -> Sequence[BaseMessage]:
    return conversation([], [given.get("messages") or []])


def _kept_input(given: Mapping[str, Any]) -> JsonValue:
    """What a run begins with, as it is kept for one that is killed before it has a state."""
    messages: JsonValue = [message_to_dict(each) for each in _messages(given)]
    others = {name: given[name] for name in ("plan", "answers") if given.get(name) is not None}
    return {"input": {**others, "messages": messages}}


def _input_again(record: RunRecord) -> Input:
    kept = record.order.get("input") if isinstance(record.order, dict) else None
    if not isinstance(kept, dict):
        raise InputError(
            f"The run {record.run_id} was killed before it had a state, and what it was asked to "
            "do is not kept. Start it again."
        )
    messages = messages_from_dict(cast("Any", kept).get("messages", []))
    return {**kept, "messages": messages}
