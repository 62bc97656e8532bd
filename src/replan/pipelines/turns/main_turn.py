"""A turn of a main thread: its tasks one after another, each stored with its outcome."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, cast
from weakref import WeakKeyDictionary

from langgraph.errors import GraphDrained
from pydantic import ValidationError

from replan.base.errors import LimitReachedError, PhaseError, StaleThreadError, ThreadError
from replan.base.failures import describe
from replan.base.texts.storable import storable_text
from replan.base.values import restored
from replan.log.events.types import PlaceholderShown
from replan.pipelines.host_utils import HostUtils, using_host_utils
from replan.pipelines.messages import (
    add_message,
    change_message,
    newest_bot_message,
    update_message,
)
from replan.pipelines.phases.agent_and_handler import BaseAgent
from replan.pipelines.phases.suggestions import SUGGESTION, next_phase, take_suggestion
from replan.pipelines.response import Response, ends_pipeline
from replan.pipelines.sub_threads.sub_thread_handlers import PLACEHOLDER, give_up
from replan.pipelines.task import RETRY, UI_ACTION, Task
from replan.ports.thread_repository import ThreadRepository
from replan.state.pipeline.thread_rows import QUESTIONS
from replan.state.pipeline.threads import COMPLETED, HISTORY, INITIAL, Thread, ThreadMessage

TASKS = "_next_tasks"
"""Where the settings of a main thread have the tasks that are not done yet."""

STEP = "_step"
"""Where the settings of a main thread name the step of a run that has begun on it."""

VERSION = "_version"
"""Where the settings of a main thread have the version of the pipeline."""

MOST_TASKS = 50
"""How many tasks a turn may have; each one can add others."""


class MainTurn:
    """What an agent does with a main thread, from a message of a user until nothing is left to do.

    All that it depends on is stored with the thread, so that a turn that was cut off continues.
    """

    def __init__(self, agent: BaseAgent, thread: Thread, utils: HostUtils) -> None:
        self.response: Response | None = None
        self._agent = agent
        self._thread = thread
        self._utils = utils
        self._done = 0

    @property
    def tasks(self) -> list[Task]:
        """The tasks that are left, the next one first."""
        try:
            return [restored(Task, stored) for stored in self._thread.settings.get(TASKS, ())]
        except (TypeError, ValidationError) as error:
            fix = "Let a handler add tasks to its response: add_next_task(Task(name=...))."
            raise ThreadError(self._thread.id, f"its {TASKS} are not tasks", fix) from error

    @property
    def phase(self) -> str | None:
        """The phase that works next; None if nothing is left to do, or a task failed."""
        if not self._thread.settings.get(TASKS) or (self.response and self.response.is_failed):
            return None
        return next_phase(self._thread)

    async def begin_step(self, message: str | None, name: str) -> None:
        """Begin with what a step was asked, unless an earlier attempt of it has begun with it.

        Args:
            message: The message; None continues with what is left.
            name: Identifies the step, whatever was done on the thread before.
        """
        is_new = self._thread.settings.get(STEP) != name
        self._thread.settings[STEP] = name
        self._thread.settings.pop(QUESTIONS, None)
        await self.begin(message if is_new else None)

    async def begin(self, message: str | None = None, *, retry: bool = False) -> None:
        """Begin with what a user said, do the last task again, or continue with what is left."""
        thread, agent = self._thread, self._agent
        await self._check_version()
        for phase in (thread.phase, next_phase(thread)):
            if phase != COMPLETED and phase not in agent.state_handlers:
                phases = ", ".join(agent.state_handlers)
                problem = f"{type(agent).__name__} has no handler"
                raise PhaseError(thread.id, phase, problem, f"There are handlers for: {phases}.")
        if retry:
            self._set_tasks([self._again()])
        elif message is not None:
            self._take(message)
        elif not thread.settings.get(TASKS):
            if newest_bot_message(thread) is None:
                raise ThreadError(thread.id, "there is nothing to do", "Give it a message.")
            return
        thread.set_status(error=None)
        await self._utils.thread_repository.save_thread(thread)

    async def step(self) -> None:
        """Do the next task, and store its outcome; a failure is stored with the thread.

        Raises:
            GraphDrained: Work is to stop.
        """
        if self._utils.is_stopping():
            raise GraphDrained("a stop before the phase")
        task = self.tasks[0]
        self._done += 1
        with using_host_utils(self._utils):
            try:
                self.response = await self._made(task)
            except Exception as error:
                if ends_pipeline(error):
                    raise
                # Foreign code: its failure is a response.
                self.response = Response(failure=error)
            if (failure := self.response.failure) is not None:
                await self._keep_error(describe(failure))

    async def _keep_error(self, error: str) -> None:
        """Store why a task failed, with the thread as its handler left it, or as it was before."""
        repository = self._utils.thread_repository
        try:
            self._thread.set_status(error=error)
            await repository.save_thread(self._thread)
        except Exception as failed:
            if ends_pipeline(failed):
                raise
            # Foreign code may have put anything there.
            self._thread = await repository.get_thread(self._thread.id) or self._thread
            self._thread.set_status(error=error)
            await repository.save_thread(self._thread)

    async def _made(self, task: Task) -> Response:
        thread = self._thread
        if self._done > MOST_TASKS:
            problem, fix = f"the turn has had {MOST_TASKS} tasks", "Let a handler add no next task."
            raise PhaseError(thread.id, thread.phase, problem, fix)
        shown_before = self._utils.audience.texts
        response = await self._agent.execute_task(task, thread)
        if response.failure is None:
            await self._keep(task, response, shown_before)
        return response

    async def run_to_end(self) -> Response:
        """Do all that is left, and return the last response."""
        while self.phase is not None:
            await self.step()
        return self.answer

    @property
    def place(self) -> tuple[str, str, str]:
        """Where work is: the deepest thread that is not completed, its phase, its last text."""
        thread, phase, said = self._thread, next_phase(self._thread), ""
        while True:
            done = (m for m in thread.messages if m.meta.get(PLACEHOLDER, False) is False)
            said = [said, *(message.text for message in done if message.sender == "bot")][-1]
            open_ones = [
                sub
                for path, sub in thread.sub_threads()
                if sub.phase != COMPLETED and HISTORY not in path.split(".")
            ]
            if not open_ones:
                return thread.id, phase, said
            thread = open_ones[-1]
            phase = thread.phase

    def cut_by(self, limit: LimitReachedError) -> tuple[str, str]:
        """Return what there is where a limit ended the work, and why there is no more."""
        _, phase, said = self.place
        why = f"The work ended in the phase '{phase}': {limit}"
        return (f"{said}\n\n({why})" if said else why), why

    @property
    def answer(self) -> Response:
        """The last response; where nothing was left to do, that of the last message."""
        if self.response is not None:
            return self.response
        last = newest_bot_message(self._thread)
        return Response("" if last is None else last.text)

    @property
    def is_completed(self) -> bool:
        """Whether the thread has finished the user's last message."""
        return next_phase(self._thread) == COMPLETED and not self._thread.settings.get(TASKS)

    def _take(self, message: str) -> None:
        """Take in what a user said; what is done begins again, and so does what failed or waits."""
        thread, utils = self._thread, self._utils
        if next_phase(thread) == COMPLETED or thread.error or self.tasks:
            give_up(thread)
            thread.settings.pop(SUGGESTION, None)
            thread.set_status(phase=self._agent.first_phase)
        message = storable_text(message)
        add_message(thread, utils, "user", message)
        task = Task(name="message", type=Task.TYPE_MESSAGE, message=message, id=utils.new_id())
        self._set_tasks([task])

    def _again(self) -> Task:
        """Return what is done again: the task that is left, else the last message of the user."""
        thread, left = self._thread, self.tasks
        if left:
            task = left[0]
        elif thread.phase == COMPLETED or not thread.messages:
            raise ThreadError(thread.id, "there is nothing to repeat", "Give it a message.")
        else:
            requests = [message.text for message in thread.messages if message.sender == "user"]
            task = Task(name="retry", message=requests[-1] if requests else "")
        meta = {**task.meta, UI_ACTION: RETRY}
        return task.replace(meta=meta, id=self._utils.new_id())

    async def _keep(self, task: Task, response: Response, shown_before: int) -> None:
        """Store, in one write: the message, the suggestion, the sub-thread, and the next tasks."""
        thread, utils = self._thread, self._utils
        message = await self._message(response, shown_before)
        take_suggestion(task, thread, response.phase_suggestion)
        if message is not None and (request := response.sub_thread_request) is not None:
            key = request.meta_path.removeprefix("meta.")
            status = {"brief_status": {"phase": INITIAL}}
            sub_id = f"sub_{thread.id}_{utils.new_id()}"
            sub_thread = Thread(sub_id, settings={**status, **request.settings})
            change_message(thread, message.id, meta={key: sub_thread})
        about = {} if message is None else {"placeholder_id": message.id}
        following = [
            task.replace(meta={**about, **task.meta}, id=utils.new_id())
            for task in response.next_tasks
        ]
        self._set_tasks([*following, *self.tasks[1:]])
        await utils.thread_repository.save_thread(thread)
        if message is not None and message.meta.get(PLACEHOLDER) is True:
            utils.tell(PlaceholderShown, message_id=message.id, text=message.text, path="")
        elif message is not None:
            await utils.audience.show_text(message.text, shown_before)

    async def _message(self, response: Response, shown_before: int) -> ThreadMessage | None:
        """Change a message, or create one; None if the handler has done it already."""
        thread, utils = self._thread, self._utils
        await utils.audience.show_pieces(response.pieces(), shown_before)
        if response.skips_message:
            return None
        update = response.message_update
        response.text = storable_text(response.text)
        if not response.text.strip() and update is None:
            raise PhaseError(thread.id, thread.phase, "the response is empty", "Return some text.")
        meta: dict[str, Any] = {**response.message_meta, "phase": thread.phase}
        if update is not None:
            message = update_message(thread, update, response.text, meta)
            response.text = message.text
            return message
        return add_message(thread, utils, "bot", response.text, meta)

    def _set_tasks(self, tasks: list[Task]) -> None:
        written = [task.model_dump(mode="json", exclude_defaults=True) for task in tasks]
        self._thread.settings[TASKS] = written

    async def _check_version(self) -> None:
        """Let the pipeline take a thread that another version of it wrote."""
        thread, version = self._thread, type(self._agent).version
        settings = cast("Mapping[str, Any]", thread.settings)
        stored = settings.get(VERSION, version if not thread.messages else 1)
        if stored != version and not await self._agent.migrate(thread, stored):
            raise ThreadError(
                thread.id,
                f"it is of version {stored} of the pipeline, and {type(self._agent).__name__} is "
                f"of version {version}",
                "Let its method migrate take threads of this version, or begin a new thread.",
            )
        thread.settings[VERSION] = version


_at_work: WeakKeyDictionary[ThreadRepository, set[str]] = WeakKeyDictionary()


async def turn_on(
    agent: type[BaseAgent], thread_id: str, utils: HostUtils, *, run_id: str = ""
) -> MainTurn:
    """Return a turn on a thread, which is read, or created if it does not exist."""
    thread = await utils.thread_repository.get_thread(thread_id)
    thread = thread or Thread(thread_id, run_id=run_id)
    return MainTurn(await agent.create(settings=thread.settings), thread, utils)


@contextmanager
def exclusively(repository: ThreadRepository, thread_id: str) -> Generator[None]:
    """Be the only one of this process on a thread; other processes are refused when they store."""
    # One that serves many calls at once has another one for each.
    own: ThreadRepository = getattr(repository, "own", repository)
    busy = _at_work.setdefault(own, set())
    if thread_id in busy:
        raise StaleThreadError(thread_id)
    busy.add(thread_id)
    try:
        yield
    finally:
        busy.discard(thread_id)
