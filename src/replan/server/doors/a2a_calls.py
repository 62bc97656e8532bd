"""What agents call by A2A: a run is a task that they begin, follow, answer and cancel.

Everything about a task is read from the storage, so a server that was started again reports
it, too. A message that is sent twice is one task.
"""

import hashlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, NoReturn, cast

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
from langchain_core.messages import BaseMessage

from replan.errors import InputError
from replan.events import types as events
from replan.log.report import RunReport
from replan.ports.run_book import RunRecord
from replan.runs.reads import state_of
from replan.runs.run import Run
from replan.server.callers.identity import Identity, check_role
from replan.server.doors import a2a_wire
from replan.server.doors.conversations import progress_line, reply_text, text_in
from replan.server.response_schemas import TEAM, TENANT
from replan.server.served_teams import ServedTeams
from replan.server.work import answer_run, begin_run, resume_run
from replan.state.person.answers import Shown, shown_in

_CANCELLED = ("replan", "server", "a2a", "cancelled")
_ANSWERED = ("replan", "server", "a2a", "answered")
_SHOWN = ("replan", "server", "a2a", "shown")
_PAGE = 50
_MOST = 100


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
            run, _ = await self._begin(params)
            if not params.configuration.return_immediately:
                await run
            config = params.configuration
            most = config.history_length if config.HasField("history_length") else None
            return await self._task_of(await run.report(), most)

    async def on_message_send_stream(
        self, params: a2a.SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        """Begin a task, or continue one, and tell its course."""
        with a2a_wire.raising_a2a_errors():
            self.served.stream_seat(self.who)  # refuses one too many before anything is begun
            run, after = await self._begin(params)
            async with aclosing(self._follow(run, after)) as events:
                async for event in events:
                    yield event

    async def on_subscribe_to_task(
        self, params: a2a.SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        """Report the course of a task from now on."""
        with a2a_wire.raising_a2a_errors():
            self.served.stream_seat(self.who)
            view = await self._view(params.id)
            if (await self._task_of(view)).status.state in a2a_wire.OVER:
                raise UnsupportedOperationError("The task is over. GetTask has its answer.")
            run = Run(self.served.runtime_of(view), view.run_id)
            known = len(await self.served.storage.log.events(view.run_id))
            async with aclosing(self._follow(run, known)) as events:
                async for event in events:
                    yield event

    async def on_get_task(
        self, params: a2a.GetTaskRequest, context: ServerCallContext
    ) -> a2a.Task | None:
        """Return the status of a task."""
        with a2a_wire.raising_a2a_errors():
            most = params.history_length if params.HasField("history_length") else None
            return await self._task_of(await self._view(params.id), most)

    async def on_cancel_task(
        self, params: a2a.CancelTaskRequest, context: ServerCallContext
    ) -> a2a.Task | None:
        """Stop a task permanently; what it did stays on record."""
        with a2a_wire.raising_a2a_errors():
            check_role(self.who, "run")
            view = await self._view(params.id)
            if (await self._task_of(view)).status.state in a2a_wire.OVER:
                raise TaskNotCancelableError("The task is over.")
            runtime = self.served.runtime_of(view)
            store = self.served.storage.store
            await store.aput(_CANCELLED, view.run_id, {"by": self.who.person}, index=False)
            await runtime.stop(view.run_id, by=self.who.person)
            await runtime.wait(view.run_id)
            return await self._task_of(await runtime.get(view.run_id))

    async def on_list_tasks(
        self, params: a2a.ListTasksRequest, context: ServerCallContext
    ) -> a2a.ListTasksResponse:
        """List the tasks of the team that the caller may see, the newest first."""
        most = params.page_size if params.HasField("page_size") else _PAGE
        if not 1 <= most <= _MOST:
            raise InvalidParamsError(f"pageSize: give a number from 1 to {_MOST}.")
        labels = {TEAM: self.team, **({TENANT: self.who.tenant} if self.who.tenant else {})}
        if params.context_id:
            labels[a2a_wire.CONTEXT] = params.context_id
        with a2a_wire.raising_a2a_errors():
            behind = (
                await self.served.record_of(params.page_token, self.who)
                if (params.page_token)
                else None
            )
            records = await self.served.storage.runs.recent(most + 1, labels, behind=behind)
            seen = [each for each in records[:most] if self.served.is_seen(each, self.who)]
            tasks = [await self._listed(each, params) for each in seen]
        if params.status:
            tasks = [each for each in tasks if each.status.state == params.status]
        following = records[most - 1].run_id if len(records) > most else ""
        return a2a.ListTasksResponse(
            tasks=tasks, next_page_token=following, page_size=most, total_size=len(tasks)
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

    async def _begin(self, params: a2a.SendMessageRequest) -> tuple[Run, int]:
        """Begin a task, or continue one; with the number of the last event that is known."""
        check_role(self.who, "run")
        message = params.message
        if params.configuration.HasField("task_push_notification_config"):
            raise PushNotificationNotSupportedError
        if not message.message_id:
            raise InvalidParamsError("message.messageId: it is missing. Add it.")
        if message.task_id:
            return await self._continue(message)
        run_id = self._digest(message)
        known = await self.served.storage.runs.get(run_id)
        if known is not None:
            return await self._existing_run(known), 0
        given = {"messages": [a2a_wire.read_request(message)]}
        labels = {
            "door": "a2a",
            a2a_wire.CONTEXT: a2a_wire.context_named(message, self.served.new_id()),
        }
        options: Any = {"run_id": run_id, "labels": labels, "tokens": True}
        return await begin_run(self.served, self.who, self.team, given, **options), 0

    async def _existing_run(self, record: RunRecord) -> Run:
        """The run of a message that came before; it continues if its process was killed."""
        runtime = self.served.runtime_of(record)
        if (await runtime.get(record.run_id)).is_killed:
            return await resume_run(self.served, self.who, record, None)
        return Run(runtime, record.run_id)

    async def _continue(self, message: a2a.Message) -> tuple[Run, int]:
        """Answer a task, or continue one that rests."""
        view = await self._view(message.task_id)
        if message.context_id and message.context_id != a2a_wire.context_of(view):
            raise InvalidParamsError("message.contextId: the task is of another context.")
        known = len(await self.served.storage.log.events(view.run_id))
        run, store = (
            Run(self.served.runtime_of(view), view.run_id),
            self.served.storage.store,
        )
        name = self._digest(message)
        if await store.aget(_ANSWERED, name) is not None:
            # It came before, and may not answer what is asked since.
            return run, known
        is_cancelled = await self._is_cancelled(view.run_id)
        state = a2a_wire.task_of(view, is_cancelled=is_cancelled).status.state
        if state != a2a.TaskState.TASK_STATE_INPUT_REQUIRED:
            raise UnsupportedOperationError(
                f"The task takes no message now: it is {view.outcome}. GetTask shows it."
            )
        if view.outcome == "interrupted":
            run = await resume_run(self.served, self.who, view, None)
        else:
            check_role(self.who, "answer")
            try:
                shown = await self._shown(view.run_id)
                given = a2a_wire.answers_in_message(message, view.pending_questions, shown)
                run = await answer_run(self.served, self.who, view, given, tokens=True)
            except InputError as error:
                await self._show(view)
                raise InvalidParamsError(f"message.parts: {error} {reply_text(view)}") from error
        await store.aput(_ANSWERED, name, {"run_id": view.run_id}, index=False)
        return run, known

    async def _follow(self, run: Run, after: int) -> AsyncGenerator[Event]:
        """The task as it is, what happens, and how it ends."""
        view = await run.report()
        ids: Any = {"task_id": view.run_id, "context_id": a2a_wire.context_of(view)}
        task = await self._task_of(view)
        yield task
        is_begun, waits = False, task.status.state == a2a.TaskState.TASK_STATE_SUBMITTED
        async with aclosing(run.events(after=after, tokens=True)) as events:
            async for event in events:
                if waits:
                    waits = False
                    at_work = a2a.TaskStatus(state=a2a.TaskState.TASK_STATE_WORKING)
                    yield a2a.TaskStatusUpdateEvent(**ids, status=at_work)
                if piece := text_in(event):
                    artifact = a2a.Artifact(
                        artifact_id=a2a_wire.ANSWER, parts=[new_text_part(piece)]
                    )
                    yield a2a.TaskArtifactUpdateEvent(**ids, artifact=artifact, append=is_begun)
                    is_begun = True
                elif course := progress_line(event):
                    yield a2a.TaskStatusUpdateEvent(**ids, status=_working(view, event, course))
        await run
        view = await run.report()
        await self._show(view)
        for artifact in a2a_wire.artifacts_of(view):
            # A reply may have been begun again: this is the whole of it.
            yield a2a.TaskArtifactUpdateEvent(**ids, artifact=artifact, last_chunk=True)
        yield a2a.TaskStatusUpdateEvent(
            **ids,
            status=a2a_wire.status_of(view, is_cancelled=await self._is_cancelled(view.run_id)),
        )

    async def _view(self, task_id: str) -> RunReport:
        record = await self.served.record_of(task_id, self.who)
        if record.labels.get(TEAM) != self.team:
            raise TaskNotFoundError("There is no such task here.")
        return await self.served.runtime_of(record).get(record.run_id)

    async def _shown(self, run_id: str) -> Shown:
        """What the caller was shown last of what a task asks."""
        item = await self.served.storage.store.aget(self._place_of_shown, run_id)
        return cast("Shown", item.value) if item is not None else {}

    async def _show(self, view: RunReport) -> None:
        """Note what a status shows the caller; an answer counts for nothing else."""
        shown = shown_in(view.pending_questions)
        if shown and shown != await self._shown(view.run_id):
            store = self.served.storage.store
            await store.aput(self._place_of_shown, view.run_id, {**shown}, index=False)

    @property
    def _place_of_shown(self) -> tuple[str, ...]:
        return (*_SHOWN, f"t-{self.who.tenant}", f"n-{self.who.name}")

    async def _task_of(self, view: RunReport, most: int | None = None) -> a2a.Task:
        await self._show(view)
        said = await self._messages(view, most)
        task = a2a_wire.task_of(view, said, is_cancelled=await self._is_cancelled(view.run_id))
        del task.history[: 0 if most is None else max(0, len(task.history) - most)]
        return task

    async def _messages(self, view: RunReport, most: int | None) -> Sequence[BaseMessage]:
        if most == 0:
            return ()
        state = await state_of(view.run_id, self.served.runtime_of(view).resources)
        return state.get("messages", ())

    async def _listed(self, record: RunRecord, params: a2a.ListTasksRequest) -> a2a.Task:
        view = await self.served.runtime_of(record).get(record.run_id)
        most = params.history_length if params.HasField("history_length") else 0
        task = await self._task_of(view, most)
        if not params.include_artifacts:
            task.ClearField("artifacts")
        return task

    async def _is_cancelled(self, run_id: str) -> bool:
        return await self.served.storage.store.aget(_CANCELLED, run_id) is not None

    def _digest(self, message: a2a.Message) -> str:
        """What a message is known by: the same, sent again, is the same task."""
        whose = f"{self.who.tenant} {self.who.name} {self.team} ".encode()
        held = message.SerializeToString(deterministic=True)
        return hashlib.sha256(whose + held).hexdigest()[:32]


def _working(view: RunReport, event: events.Event, course: str) -> a2a.TaskStatus:
    status = a2a.TaskStatus(state=a2a.TaskState.TASK_STATE_WORKING)
    status.message.CopyFrom(
        a2a_wire.message_of(view, [new_text_part(course.strip())], str(event.seq))
    )
    return status
