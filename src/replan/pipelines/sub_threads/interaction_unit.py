"""One complete round of bot and user in a sub-thread, which continues where it was cut off."""

import asyncio
import logging
from typing import Literal, Self

from replan.base.errors import ConfigurationError, PhaseError
from replan.base.texts.storable import storable_text
from replan.pipelines.messages import (
    add_message,
    change_message,
    newest_bot_message,
    update_message,
)
from replan.pipelines.phases.agent_and_handler import BaseAgent, StateHandler
from replan.pipelines.phases.suggestions import (
    ROUND,
    SUGGESTION,
    phase_unchanged,
    round_of,
    store_suggestion,
    suggested_phase,
    take_suggestion,
    thread_of,
)
from replan.pipelines.phases.usable_response import check_sub_response
from replan.pipelines.response import Response
from replan.pipelines.task import Task
from replan.state.pipeline.threads import COMPLETED, Thread, ThreadMessage

CONTINUE = "Continue."
"""The default text of the user's side of a round."""

_log = logging.getLogger(__name__)


class InteractionUnit:
    """Handles one round of a sub-thread: the bot's message, then the user's.

    Its name and those of its methods come from the source document. A subclass overrides
    `generate_user_message`, if the next phase needs more than `Continue.`

    Attributes:
        state_handler: The handler that produces the bot's message.
        phase: The phase of the round; that of the handler.
        next_phase: The phase that follows; that of the handler.
        timeout: Seconds that the handler may take for its message; None means no bound.
    """

    timeout: float | None = None

    def __init__(
        self,
        *,
        state_handler: StateHandler,
        phase: str | None = None,
        next_phase: str | None = None,
        timeout: float | None = None,
    ) -> None:
        self.state_handler = state_handler
        self.phase = state_handler.phase
        self.next_phase = state_handler.following[0]
        self.timeout = self.timeout if timeout is None else timeout
        for name, declared in (("phase", phase), ("next_phase", next_phase)):
            if declared is not None and declared != getattr(self, name):
                problem = f"its handler {type(state_handler).__name__} says '{getattr(self, name)}'"
                fix = "Leave it out: the unit takes it from its handler."
                raise ConfigurationError(f"{type(self).__name__}.{name}", declared, problem, fix)

    @classmethod
    async def create(
        cls,
        *,
        state_handler: StateHandler,
        phase: str | None = None,
        next_phase: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - of the unit's work, not of this call
    ) -> Self:
        """Make a unit that is ready to work.

        Raises:
            ConfigurationError: It and its handler disagree.
        """
        unit = cls(state_handler=state_handler, phase=phase, next_phase=next_phase, timeout=timeout)
        await unit.initialize()
        return unit

    async def initialize(self) -> None:
        """Prepare the unit; overridden where there is something to prepare."""

    async def execute(self, task: Task, thread: Thread, agent: BaseAgent) -> ThreadMessage:
        """Do the remaining work of the round, and return the bot's message.

        A stored message is not produced again.
        """
        working_thread = thread_of(task, thread)
        bot = _stored(working_thread, "bot")
        if bot is None:
            # Of a handler that was cut off before its message was stored.
            working_thread.settings.pop(SUGGESTION, None)
            bot = await self._execute_bot_message_generation(task, thread, agent)
        following = suggested_phase(working_thread) or self.next_phase
        if following != COMPLETED and _stored(working_thread, "user") is None:
            await self._add_user_message(bot, task, thread, agent)
        await self._suggest_and_store(task, thread)
        return bot

    async def _suggest_and_store(self, task: Task, thread: Thread) -> None:
        """Store the round with the phase that follows, in one write."""
        if suggested_phase(thread_of(task, thread)) is None:
            await self._suggest_phase_update(task, thread)
        await task.host_utils.thread_repository.save_thread(thread)

    async def generate_user_message(
        self, bot_message: ThreadMessage, task: Task, thread: Thread, agent: BaseAgent
    ) -> str:
        """Follow the instructions in the bot's message, and return the reply of the user's side."""
        return CONTINUE

    async def _execute_bot_message_generation(
        self, task: Task, thread: Thread, agent: BaseAgent
    ) -> ThreadMessage:
        """Let the handler produce the bot's message, and store it."""
        audience = task.host_utils.audience
        shown_before = audience.texts
        response = await self._handled(task, thread, agent)
        working_thread = thread_of(task, thread)
        take_suggestion(task, working_thread, response.phase_suggestion)
        bot = self._put(response, working_thread, thread, task)
        if (suggested_phase(working_thread) or self.next_phase) == COMPLETED:
            await self._suggest_and_store(task, thread)
        else:
            await task.host_utils.thread_repository.save_thread(thread)
        await audience.show_text(bot.text, shown_before)
        return bot

    async def _handled(self, task: Task, thread: Thread, agent: BaseAgent) -> Response:
        handler, phase = self.state_handler, self.phase
        name = type(handler).__name__
        try:
            async with asyncio.timeout(self.timeout):
                with phase_unchanged(task, thread, name):
                    response = await handler.handle(task, thread, agent)
        except TimeoutError as error:
            if self.timeout is None:
                raise
            problem = f"{name} took more than {self.timeout:g} s"
            raise PhaseError(thread.id, phase, problem, "Raise the unit's timeout.") from error
        working_thread = thread_of(task, thread)
        response = check_sub_response(response, working_thread, name, handler.following)
        if response.failure is not None:
            raise response.failure
        return response

    def _put(
        self, response: Response, working_thread: Thread, thread: Thread, task: Task
    ) -> ThreadMessage:
        """Put the handler's message into the sub-thread, as that of this round."""
        meta = {**response.message_meta, "phase": self.phase, ROUND: round_of(working_thread)}
        if (update := response.message_update) is not None:
            return update_message(working_thread, update, response.text, meta)
        if response.skips_message:
            found = newest_bot_message(working_thread)
            if found is not None:
                return change_message(working_thread, found.id, meta=meta)
            about = {"thread_id": thread.id, "phase": self.phase}
            _log.warning("there is no bot message to keep, so one is created", extra=about)
            if not response.text.strip():
                name = type(self.state_handler).__name__
                problem = f"{name} returned an empty text, and there is no message to keep"
                raise PhaseError(working_thread.id, self.phase, problem, "Return some text.")
        return add_message(working_thread, task.host_utils, "sub_bot", response.text, meta)

    async def _add_user_message(
        self, bot: ThreadMessage, task: Task, thread: Thread, agent: BaseAgent
    ) -> None:
        name = f"{type(self).__name__}.generate_user_message"
        with phase_unchanged(task, thread, name):
            text = await self.generate_user_message(bot, task, thread, agent)
        working_thread, utils = thread_of(task, thread), task.host_utils
        text = storable_text(str(text or ""))
        if not text.strip():
            problem = f"{name} returned no text"
            raise PhaseError(thread.id, self.phase, problem, f"Return text such as '{CONTINUE}'")
        add_message(
            working_thread,
            utils,
            "sub_user",
            text,
            {"phase": self.phase, ROUND: round_of(working_thread)},
        )

    async def _suggest_phase_update(self, task: Task, thread: Thread) -> None:
        """Suggest the next phase."""
        await store_suggestion(task, thread, self.next_phase)


def _stored(thread: Thread, sender: Literal["bot", "user"]) -> ThreadMessage | None:
    """Find the message of a side in the round that a thread is in."""
    number = round_of(thread)
    # It may be anywhere: a round can change the message of an earlier one, and take it over.
    messages_of_round = (m for m in reversed(thread.messages) if m.meta.get(ROUND) == number)
    return next((message for message in messages_of_round if message.sender == sender), None)
