"""The client of an agent: it keeps the sessions, and takes each turn of a session once."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import replace
from datetime import datetime
from typing import Any, Self, Unpack

from replan.base.errors import InputError, ReplanError, UsageError
from replan.base.failures import describe
from replan.base.texts.storable import unstorable
from replan.log.events.types import Event
from replan.ports.agent import Agent, TurnOptions, UserInput
from replan.ports.ownership import unowned
from replan.ports.session_store import (
    ContextStore,
    SessionStore,
    SessionTurn,
)
from replan.ports.storage import Storage
from replan.runs.work_stream import stream_of
from replan.sessions.client.kept_turn import (
    KeptTurn,
    check_agent,
    given_digest,
    recorded_result,
    title_of,
    with_version,
)
from replan.sessions.client.user_sessions import UserSessions
from replan.sessions.request import read_input
from replan.sessions.session_runs import labels_of, run_in
from replan.sessions.stateless_agent import KeptAgent
from replan.state.limits import RunSettings
from replan.state.session.context import AgentResult

logger = logging.getLogger(__name__)


class ClientAgentAdapter(UserSessions):
    """Keeps the sessions of a user in a store, and lets an agent take their turns.

    The name is that of GTPlanner's stateless refactoring, from which the design comes.
    """

    def __init__(  # noqa: PLR0913 - what a client leaves open
        self,
        store: Storage | SessionStore | ContextStore,
        agent: Agent,
        *,
        tenant: str = "",
        user: str = "",
        agent_name: str = "",
        clock: Callable[[], datetime] | None = None,
        new_id: Callable[[], str] | None = None,
    ) -> None:
        """Prepare.

        Args:
            store: A storage from `open_storage`: it holds a session during a turn, and has the
                runs of the turns, so that a killed turn continues. Or a `SessionStore`, or any
                object with the two methods of `ContextStore`, asynchronous or not.
            agent: Takes the turns, such as one from `build_agent`.
            tenant: The tenant whose sessions these are.
            user: The user whose sessions these are; other users do not find them.
            agent_name: What the agent is called, such as `the team 'shop'`. It is kept with each
                session, and then an agent of another name is refused its turns.
            clock: Returns the time of turns, with a time zone.
            new_id: Returns a new id for a turn.
        """
        super().__init__(store, tenant=tenant, user=user, clock=clock, new_id=new_id)
        kept_in = None if self._storage is None else getattr(agent, "kept_in", None)
        self._is_kept = kept_in is not None
        self._agent: Agent = agent if kept_in is None else kept_in(self._storage)
        self._agent_name = agent_name
        self._behind = set[asyncio.Task[None]]()  # summaries that are being written

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Wait for the summaries that are being written after answers."""
        while self._behind:
            await asyncio.wait(set(self._behind))

    async def process(
        self,
        session_id: str,
        user_input: UserInput,
        *,
        turn_id: str | None = None,
        edit: bool = False,
        **options: Unpack[TurnOptions],
    ) -> AgentResult:
        """Take one turn of a session, and store it. An unknown session is created.

        Args:
            session_id: The session.
            user_input: What the user says, as for the agent.
            turn_id: Identifies the turn, such as the id of a message in a queue. The same
                turn again returns the recorded result; a killed one continues.
            edit: Whether the turn replaces the newest one; see `undo`.
            options: As for the agent.

        Returns:
            The agent's result. Its `metadata` names `session_id`, `turn_id` and the `version` of
            the session.

        Raises:
            SessionBusyError: Another client takes a turn of the session. No model was called.
            SessionConflictError: The session has changed in the meantime; send the turn again.
            InputError: The turn was taken before with another input, or the session began with an
                agent of another name.
            ContextError: The stored session cannot be used.
            StorageError: The turn cannot be stored.
        """
        async with self._owned(self._key(session_id)):
            turn = await self._turn(session_id, user_input, turn_id, options, edit=edit)
            if isinstance(turn, AgentResult):
                return turn
            turn_options = self._options(turn, options)
            result = await self._agent.process(user_input, turn.context, **turn_options)
            return await self._keep(turn, result)

    def stream(
        self,
        session_id: str,
        user_input: UserInput,
        *,
        turn_id: str | None = None,
        edit: bool = False,
        **options: Unpack[TurnOptions],
    ) -> AsyncGenerator[Event | AgentResult]:
        """Take one turn as `process` does; yields its events as they happen, the result last.

        Closing the iterator before its end cancels the turn. Arguments and errors are those
        of `process`.
        """

        def process(report: Callable[[Event], None]) -> Coroutine[Any, Any, AgentResult]:
            all_options: TurnOptions = {**options, "on_event": report}
            return self.process(session_id, user_input, turn_id=turn_id, edit=edit, **all_options)

        return stream_of(process)

    async def _turn(
        self,
        session_id: str,
        user_input: UserInput,
        turn_id: str | None,
        options: TurnOptions,
        *,
        edit: bool,
    ) -> KeptTurn | AgentResult:
        """The turn that is to be taken; its result, if it was taken before."""
        key = self._key(session_id)
        try:
            read_input(user_input)
        except UsageError as error:
            return AgentResult(success=False, response="", error=describe(error))
        input_digest = given_digest(
            user_input, is_new=bool(options.get("new_request")), is_edit=edit
        )
        if turn_id is not None and (problem := unstorable(turn_id)):
            raise InputError(f"The turn_id cannot be kept. {problem}")
        turn_on_record = None if turn_id is None else await self._store.turn(key, turn_id)
        if turn_on_record is not None:
            return recorded_result(turn_on_record, input_digest)
        now = await self._now(key)
        check_agent(now.context, self._agent_name)
        turn = KeptTurn(
            key=key,
            turn_id=turn_id or self._new_id(),
            given=input_digest,
            title=title_of(user_input),
            context=now.context,
            version=now.version,
            agent=self._agent_name,
        )
        if not edit:
            return turn
        before = await self._before(key, now)
        await self._forget_run(key, before.context, turn.name)
        return replace(turn, context=before.context, takes_back=now.newest)

    async def _keep(self, turn: KeptTurn, result: AgentResult) -> AgentResult:
        """Keep a turn; the summary of the session is written behind it."""
        kept = await turn.keep(result, self._store, self._clock())
        if kept.metadata.get("summary_due") and isinstance(self._agent, KeptAgent):
            summing_up = self._write_summary(turn, self._agent, kept)
            writing = asyncio.get_running_loop().create_task(summing_up, context=unowned())
            self._behind.add(writing)
            writing.add_done_callback(self._behind.discard)
        return kept

    async def _write_summary(self, turn: KeptTurn, agent: KeptAgent, result: AgentResult) -> None:
        """Write the summary of a session, unless its next turn comes first."""
        run_id, version = str(result.metadata["run_id"]), turn.version + 1
        try:
            updates = await agent.sum_up(run_id, turn.context)
            summary = SessionTurn(
                turn_id=self._new_id(),
                at=self._clock(),
                stage=str(result.metadata["stage"]),
                run_id=run_id,
                updates=with_version(updates, version + 1),
            )
            async with self._owned(turn.key):
                await self._store.append(turn.key, summary, version)
        except ReplanError as error:
            # The next one covers what this one would have.
            logger.info("summary not kept", extra={"run_id": run_id, "error": str(error)})

    def _options(self, turn: KeptTurn, options: TurnOptions) -> TurnOptions:
        """The options of the agent: whose the run is, and its name."""
        all_options: TurnOptions = {**options, "run_id": options.get("run_id") or turn.name}
        begins = options.get("new_request") or not run_in(turn.context)
        settings = options.get("settings") or (RunSettings() if begins else None)
        if settings is not None and (self.tenant or self.user):
            all_options["settings"] = settings.replace(tenant=self.tenant, user=self.user)
        if self._is_kept:
            all_options["labels"] = {**options.get("labels", {}), **labels_of(turn.key)}
        return all_options
