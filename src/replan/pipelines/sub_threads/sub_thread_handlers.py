"""Handlers that start sub-threads: in the main thread in two steps, inside a sub-thread in one."""

from typing import Any, ClassVar

from replan.base.errors import ConfigurationError, PhaseError
from replan.log.events.types import PlaceholderShown
from replan.pipelines.messages import add_message, message_in, newest_bot_message
from replan.pipelines.phases.agent_and_handler import BaseAgent, StateHandler
from replan.pipelines.phases.suggestions import round_of, thread_of
from replan.pipelines.response import SKIP, UPDATE, MessageUpdate, Response
from replan.pipelines.sub_threads.sub_thread_agent import SubThreadAgent
from replan.pipelines.task import UI_ACTION, Task
from replan.state.pipeline.threads import (
    COMPLETED,
    HISTORY,
    INITIAL,
    SUB_THREAD,
    Thread,
    ThreadMessage,
    chained,
)

PLACEHOLDER = "placeholder"
"""The entry of a message's meta until its text is replaced: the round in which it was made."""

_MADE_BY = "task"


class SubThreadPreparationHandler(StateHandler):
    """Shows a placeholder, and lets the next task start the sub-thread.

    Attributes:
        placeholder: The text that is shown until there is a result.
    """

    phase = "prepare_subthread"
    next_phase = "execute_subthread"
    placeholder: str = "Your request is being processed…"

    async def handle(self, task: Task, thread: Thread, agent: BaseAgent) -> Response:
        """Return the placeholder."""
        timestamp = task.host_utils.clock().isoformat()
        following = Task(
            name="continue_processing",
            type=Task.TYPE_ACTION,
            message="Continue processing",
            skip_user_message=True,
            meta={"original_query": task.original_query, "timestamp": timestamp},
        )
        response = Response(
            self.placeholder, meta={PLACEHOLDER: True}, phase_suggestion=self.following[0]
        )
        return response.add_next_task(following)


class SubThreadExecutionHandler(StateHandler):
    """Runs a sub-thread in the placeholder, and replaces the placeholder by its result.

    Attributes:
        sub_thread_agent: The class of the agent of the sub-thread.
    """

    phase = "execute_subthread"
    sub_thread_agent: ClassVar[type[BaseAgent] | None] = None

    async def handle(self, task: Task, thread: Thread, agent: BaseAgent) -> Response:
        """Continue the sub-thread, or create one; return its result."""
        placeholder = _placeholder(task, thread)
        placeholder = await self._with_sub_thread(placeholder, task, thread)
        index = thread.place_of(placeholder.id)
        path = chained(None, index or 0)
        response = await _run(self, task, thread, agent, placeholder.meta[SUB_THREAD], path)
        if response.is_failed:
            return response
        update = MessageUpdate(
            message_id=placeholder.id, text=response.text, meta={PLACEHOLDER: False}
        )
        response.phase_suggestion = self.following[0]
        return response.set_meta({UPDATE: update})

    async def _with_sub_thread(
        self, placeholder: ThreadMessage, task: Task, thread: Thread
    ) -> ThreadMessage:
        """Return the placeholder for the sub-thread of this task; a retry keeps the earlier one."""
        before: Any = placeholder.meta.get(SUB_THREAD)
        if isinstance(before, Thread):
            is_own = before.settings.get(_MADE_BY) == task.id
            if is_own or not (task.is_retry or before.phase == COMPLETED):
                return placeholder
        sub_thread = _new_thread(f"sub_{thread.id}_{task.host_utils.new_id()}", task)
        meta: dict[str, Any] = {SUB_THREAD: sub_thread, PLACEHOLDER: True}
        if isinstance(before, Thread):
            meta[HISTORY] = (*placeholder.meta.get(HISTORY, ()), before)
        repository = task.host_utils.thread_repository
        await repository.update_message(thread, placeholder.id, {"meta": meta})
        return message_in(thread, placeholder.id)


class NestedSubThreadHandler(StateHandler):
    """Runs a deeper sub-thread inside a sub-thread, in one step.

    Attributes:
        sub_thread_agent: The class of the agent of the deeper sub-thread.
        placeholder: The text that is shown until there is a result.
    """

    sub_thread_agent: ClassVar[type[BaseAgent] | None] = None
    placeholder: str = "Running deep analysis…"

    async def handle(self, task: Task, thread: Thread, agent: BaseAgent) -> Response:
        """Continue the deeper sub-thread, or create one; return its result."""
        sub_thread = thread_of(task, thread)
        utils = task.host_utils
        message = self._shown(sub_thread)
        if message is None:
            nested = _new_thread(f"nested_{sub_thread.id}_{utils.new_id()}", task)
            meta = {SUB_THREAD: nested, PLACEHOLDER: round_of(sub_thread), "phase": self.phase}
            message = add_message(sub_thread, utils, "bot", self.placeholder, meta)
            await utils.thread_repository.save_thread(thread)
            about = {"message_id": message.id, "path": task.sub_thread_path or ""}
            utils.tell(PlaceholderShown, text=message.text, **about)
        path = chained(task.sub_thread_path, sub_thread.place_of(message.id) or 0)
        response = await _run(self, task, thread, agent, message.meta[SUB_THREAD], path)
        if response.is_failed:
            return response
        changes = {"text": response.text, "meta": {PLACEHOLDER: False}}
        await utils.thread_repository.update_message(thread, message.id, changes)
        response.phase_suggestion = self.following[0]
        return response.set_meta({SKIP: True})

    def _shown(self, sub_thread: Thread) -> ThreadMessage | None:
        """Find the message that this round has shown already, when it was cut off."""
        found = newest_bot_message(sub_thread)
        if found is None or not isinstance(found.meta.get(SUB_THREAD), Thread):
            return None
        # Its result may be in it already, and only its round not be marked as done.
        is_open = found.meta.get("round") is None and found.meta.get("phase") == self.phase
        return found if is_open else None


def give_up(thread: Thread) -> None:
    """Settle the waiting placeholders of a main thread; their sub-threads are kept as earlier ones.

    No model sees its text then, which says nothing.
    """
    for message in [
        message for message in thread.messages if message.meta.get(PLACEHOLDER) is True
    ]:
        meta = {**message.meta, PLACEHOLDER: False}
        if isinstance(before := meta.pop(SUB_THREAD, None), Thread):
            meta[HISTORY] = (*meta.get(HISTORY, ()), before)
        thread.replace(message.replace(meta=meta, is_virtual=True))


def _placeholder(task: Task, thread: Thread) -> ThreadMessage:
    message_id = task.meta.get("placeholder_id")
    found = (
        message_in(thread, message_id)
        if isinstance(message_id, str)
        else newest_bot_message(thread)
    )
    if found is None:
        problem, fix = "there is no placeholder for a sub-thread", "Prepare it in a phase before."
        raise PhaseError(thread.id, thread.phase, problem, fix)
    return found


def _new_thread(thread_id: str, task: Task) -> Thread:
    return Thread(thread_id, settings={"brief_status": {"phase": INITIAL}, _MADE_BY: task.id})


def sub_thread_agent_of(handler: StateHandler) -> type[SubThreadAgent] | None:
    """Return the class of the agent below a handler; None if it starts no sub-thread.

    Raises:
        ConfigurationError: It starts one, and names no agent for it.
    """
    starts = isinstance(handler, SubThreadExecutionHandler | NestedSubThreadHandler)
    return _agent_class(handler) if starts or handler.sub_thread_agent is not None else None


def _agent_class(handler: StateHandler) -> type[SubThreadAgent]:
    found = handler.sub_thread_agent
    if found is None or not issubclass(found, SubThreadAgent):
        field, fix = f"{type(handler).__name__}.sub_thread_agent", "Give a SubThreadAgent's class."
        raise ConfigurationError(field, found, "it names no agent of a sub-thread", fix)
    return found


async def _run(
    handler: StateHandler,
    task: Task,
    thread: Thread,
    agent: BaseAgent,
    sub_thread: Thread,
    path: str,
) -> Response:
    """Run the agent that a handler names in a sub-thread, which has settings of its own."""
    inner = await _agent_class(handler).create(agent.metadata, sub_thread.settings)
    meta = {
        **{key: value for key, value in task.meta.items() if key != UI_ACTION},
        "sub_thread_path": path,
        "parent_thread_path": task.sub_thread_path,
        "original_query": task.original_query,
        "timestamp": task.host_utils.clock().isoformat(),
    }
    inner_task = Task(name="process_sub_thread", type=Task.TYPE_ACTION, meta=meta, id=task.id)
    return await inner.execute_task(inner_task, thread)
