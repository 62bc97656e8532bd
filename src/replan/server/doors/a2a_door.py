"""What agents call by A2A: a run is a task that they begin, follow, answer and cancel.

Everything about a task is read from the storage, so a server that was started again reports
it, too. A message that is sent twice is one task.
"""

import hashlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

from a2a.helpers.proto_helpers import new_text_part
from a2a.server.context import ServerCallContext
from a2a.server.events import Event
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.types import a2a_pb2 as a2a
from a2a.utils.errors import (
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a.utils.task import (
    HistoryLengthConfig,
    apply_history_length,
    validate_history_length,
    validate_page_size,
)
from langchain_core.messages import BaseMessage
from pydantic import JsonValue

from replan.base.errors import ReplanError
from replan.log.events import types as events
from replan.log.labels import TEAM, TENANT
from replan.log.report import RunReport
from replan.ports.run_book import RunRecord
from replan.runs.calling.barred import bar, bar_on
from replan.runs.reads import state_of
from replan.runs.statuses import SCANNED, page_of, records_of
from replan.server.bodies import PlanBody
from replan.server.callers.identity import Identity, check_role
from replan.server.doors import a2a_wire
from replan.server.exchange import Begun, Ended, Exchange, RequestNames, WaitingRun
from replan.server.exchange_texts import progress_line, reply_text
from replan.server.served_teams import ServedTeams
from replan.server.work import edit_plan_of

_PAGE = 50


@dataclass(frozen=True)
class CallerTasks(RequestHandler):
    """What one caller may do with the tasks of a team."""

    served: ServedTeams
    who: Identity
    team: str

    async def on_message_send(
        self, params: a2a.SendMessageRequest, context: ServerCallContext
    ) -> a2a.Task | a2a.Message:
        """Begin a task, or continue one; wait until it rests, unless asked not to."""
        with a2a_wire.raising_a2a_errors():
            run = (await self._begin(params)).run
            if not params.configuration.return_immediately:
                await run
            return await self._task_of(await run.report(), params.configuration)

    async def on_message_send_stream(
        self, params: a2a.SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        """Begin a task, or continue one, and tell its course."""
        with a2a_wire.raising_a2a_errors():
            self.served.stream_seat(self.who)  # refuses one too many before anything is begun
            begun = await self._begin(params)
            async with aclosing(self._follow(begun)) as events:
                async for event in events:
                    yield event

    async def on_subscribe_to_task(
        self, params: a2a.SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        """Report the course of a task from now on."""
        with a2a_wire.raising_a2a_errors():
            self.served.stream_seat(self.who)
            report = await self._report(params.id)
            if (await self._status_of(report)).state in a2a_wire.OVER:
                raise UnsupportedOperationError("The task is over. GetTask has its answer.")
            async with aclosing(self._follow(await self._exchange.from_now(report))) as events:
                async for event in events:
                    yield event

    async def on_get_task(
        self, params: a2a.GetTaskRequest, context: ServerCallContext
    ) -> a2a.Task | None:
        """Return the status of a task."""
        with a2a_wire.raising_a2a_errors():
            return await self._task_of(await self._report(params.id), params)

    async def on_cancel_task(
        self, params: a2a.CancelTaskRequest, context: ServerCallContext
    ) -> a2a.Task | None:
        """Stop a task permanently; what it did stays on record."""
        with a2a_wire.raising_a2a_errors():
            check_role(self.who, "run")
            report = await self._report(params.id)
            if (await self._status_of(report)).state in a2a_wire.OVER:
                raise TaskNotCancelableError("The task is over.")
            # At every door: it is over to whoever began it.
            log, now = self.served.storage.log, self.served.clock()
            await bar(log, report.run_id, "cancelled", at=now, by=self.who.person)
            await self.served.stop(report, self.who)
            if await self.served.wait_for_rest(report) == "waiting":
                # Nobody is to answer it any more.
                await self.served.storage.runs.update(report.run_id, "interrupted", now)
            return await self._task_of(await self._report(report.run_id))

    async def on_list_tasks(
        self, params: a2a.ListTasksRequest, context: ServerCallContext
    ) -> a2a.ListTasksResponse:
        """List the tasks of the team that the caller may see, the newest first."""
        most = params.page_size if params.HasField("page_size") else _PAGE
        validate_page_size(most)
        labels = {TEAM: self.team, **({TENANT: self.who.tenant} if self.who.tenant else {})}
        if params.context_id:
            labels[a2a_wire.CONTEXT] = params.context_id
        with a2a_wire.raising_a2a_errors():
            token, book = params.page_token, self.served.storage.runs
            behind = await self.served.record_of(token, self.who) if token else None
            matching = partial(self._matching, params)
            found, last = await page_of(
                records_of(book, labels=labels, behind=behind), most, matching
            )
            every, _ = await page_of(records_of(book, labels=labels), SCANNED, matching)
            # Without a length of its own, a list has no history.
            history = a2a.GetTaskRequest(history_length=params.history_length)
            reports = [await self._report(record.run_id) for record in found]
            tasks = [await self._task_of(report, history) for report in reports]
        for task in tasks:
            if not params.include_artifacts:
                task.ClearField("artifacts")
        return a2a.ListTasksResponse(
            tasks=tasks, next_page_token=last, page_size=most, total_size=len(every)
        )

    async def on_create_task_push_notification_config(self, params: Any, context: Any) -> NoReturn:
        """Refuse: the server calls no clients."""
        raise PushNotificationNotSupportedError

    on_get_task_push_notification_config = on_create_task_push_notification_config
    on_list_task_push_notification_configs = on_create_task_push_notification_config
    on_delete_task_push_notification_config = on_create_task_push_notification_config

    async def on_get_extended_agent_card(self, params: Any, context: Any) -> NoReturn:
        """Refuse: a caller who may see the card sees all of it."""
        raise UnsupportedOperationError("There is one card for all who may see it.")

    async def _begin(self, params: a2a.SendMessageRequest) -> Begun:
        """Begin a task, or continue one."""
        check_role(self.who, "run")
        message = params.message
        if params.configuration.HasField("task_push_notification_config"):
            raise PushNotificationNotSupportedError
        if not message.message_id:
            raise InvalidParamsError("message.messageId: it is missing. Add it.")
        a2a_wire.check_supported(message, params.configuration)
        digest = self._digest(message)
        names = RequestNames(ids=(["message", message.message_id],), content=digest, run_id=digest)
        report = await self._report(message.task_id) if message.task_id else None
        if report is not None and message.context_id not in ("", a2a_wire.context_of(report)):
            raise InvalidParamsError("message.contextId: the task is of another context.")
        # One that came before may not answer what is asked since.
        if (again := await self._exchange.repeated(names)) is not None:
            return again
        if report is not None:
            return await self._continue(report, message, names)
        run_input = {"messages": [a2a_wire.read_request(message)]}
        context = a2a_wire.context_named(message, self.served.new_id())
        return await self._exchange.begin(run_input, names, **{a2a_wire.CONTEXT: context})

    async def _continue(
        self, report: RunReport, message: a2a.Message, names: RequestNames
    ) -> Begun:
        """Answer a task, or continue one that rests."""
        state = (await self._status_of(report)).state
        if state == a2a.TaskState.TASK_STATE_WORKING and not await self._is_cancelled(report):
            tell = partial(self._steer, report, a2a_wire.steering_in(message), names.run_id)
            return await self._exchange.act_and_follow(report, tell, names)
        if state != a2a.TaskState.TASK_STATE_INPUT_REQUIRED:
            raise UnsupportedOperationError(
                f"The task takes no message now: it is {report.outcome}. GetTask shows it."
            )
        exchange = self._exchange
        if report.outcome == "interrupted":
            said = a2a_wire.steering_in(message)
            if isinstance(said, PlanBody) or said.strip():
                # It is on record, and considered once the run goes on.
                await self._steer(report, said, names.run_id)
            return await exchange.resume(report, names)
        shown = await exchange.shown(_key(report))
        begun = await exchange.answer(WaitingRun(report, shown), a2a_wire.answer_in(message), names)
        if begun.problem:
            await exchange.show(report)
            raise InvalidParamsError(f"message.parts: {begun.problem} {reply_text(report)}")
        return begun

    async def _steer(self, report: RunReport, said: str | PlanBody, name: str) -> None:
        """Tell the host of a run at work something, or edit its plan."""
        if isinstance(said, PlanBody):
            check_role(self.who, "operate")
            await edit_plan_of(self.served, self.who, report, said.plan, said.version)
            return
        runtime, by = self.served.runtime_of(report), self.who.person
        await runtime.send_message(report.run_id, said, by=by, name=name)

    async def _follow(self, begun: Begun) -> AsyncGenerator[Event]:
        """The task as it is, what happens, and how it ends."""
        report = await begun.run.report()
        ids: Any = {"task_id": report.run_id, "context_id": a2a_wire.context_of(report)}
        task = await self._task_of(report)
        yield task
        is_begun, waits = False, task.status.state == a2a.TaskState.TASK_STATE_SUBMITTED
        async with aclosing(self._exchange.parts(begun)) as parts:
            async for part in parts:
                if waits and not isinstance(part, Ended | ReplanError):
                    waits = False
                    at_work = a2a.TaskStatus(state=a2a.TaskState.TASK_STATE_WORKING)
                    yield a2a.TaskStatusUpdateEvent(**ids, status=at_work)
                match part:
                    case Ended():
                        for event in await self._end(part.report, ids):
                            yield event
                    case ReplanError():
                        raise part
                    case events.AnswerToken(text=text):
                        piece = a2a_wire.answer_of(text)
                        yield a2a.TaskArtifactUpdateEvent(**ids, artifact=piece, append=is_begun)
                        is_begun = True
                    case _ if line := progress_line(part).strip():
                        status = _working(report, part, line)
                        yield a2a.TaskStatusUpdateEvent(**ids, status=status)
                    case _:
                        continue

    async def _end(self, report: RunReport, ids: Any) -> list[Event]:
        # A reply may have been begun again: this is the whole of it.
        made = [
            a2a.TaskArtifactUpdateEvent(**ids, artifact=artifact, last_chunk=True)
            for artifact in a2a_wire.artifacts_of(report)
        ]
        status = await self._status_of(report)
        return [*made, a2a.TaskStatusUpdateEvent(**ids, status=status)]

    @property
    def _exchange(self) -> Exchange:
        return Exchange(
            served=self.served,
            who=self.who,
            team=self.team,
            door="a2a",
            next_key=lambda report, _: _key(report),
            replays_events=True,
        )

    async def _report(self, task_id: str) -> RunReport:
        report = await self.served.report_of(task_id, self.who)
        if report.labels.get(TEAM) != self.team:
            raise TaskNotFoundError("There is no such task here.")
        return report

    async def _task_of(
        self, report: RunReport, wanted: HistoryLengthConfig | None = None
    ) -> a2a.Task:
        """The task of a run, with as much of its history as is wanted; all of it by default."""
        validate_history_length(wanted)
        await self._exchange.show(report)
        has_none = wanted and wanted.HasField("history_length") and not wanted.history_length
        said = () if has_none else await self._messages(report)
        task = a2a_wire.task_of(report, await self._status_of(report), said)
        return apply_history_length(task, wanted)

    async def _messages(self, report: RunReport) -> Sequence[BaseMessage]:
        state = await state_of(report.run_id, self.served.runtime_of(report).resources)
        return state.get("messages", ())

    async def _matching(self, wanted: a2a.ListTasksRequest, record: RunRecord) -> RunRecord | None:
        """A run, if it is one of those that a list is to have."""
        if not self.served.is_seen(record, self.who):
            return None
        if wanted.status or wanted.HasField("status_timestamp_after"):
            status = await self._status_of(await self._report(record.run_id))
            first = wanted.status_timestamp_after.ToNanoseconds()
            if wanted.status not in (0, status.state) or status.timestamp.ToNanoseconds() < first:
                return None
        return record

    async def _status_of(self, report: RunReport) -> a2a.TaskStatus:
        return a2a_wire.status_of(report, is_cancelled=await self._is_cancelled(report))

    async def _is_cancelled(self, report: RunReport) -> bool:
        return await bar_on(self.served.storage.log, report.run_id) == "cancelled"

    def _digest(self, message: a2a.Message) -> str:
        """What a message is known by: the same, sent again, is the same task."""
        whose = f"{self.who.tenant} {self.who.name} {self.team} ".encode()
        content = message.SerializeToString(deterministic=True)
        return hashlib.sha256(whose + content).hexdigest()[:32]


def _key(report: RunReport) -> JsonValue:
    """By what a task that waits is found: its id."""
    return ["task", report.run_id]


def _working(report: RunReport, event: events.Event, course: str) -> a2a.TaskStatus:
    status = a2a.TaskStatus(state=a2a.TaskState.TASK_STATE_WORKING)
    status.message.CopyFrom(a2a_wire.message_of(report, [new_text_part(course)], str(event.seq)))
    return status
