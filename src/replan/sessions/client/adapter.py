"""The client of an agent: it keeps the sessions, and takes each turn of a session once."""

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Self, Unpack

from replan.base.texts.storable import unstorable
from replan.errors import InputError, ReplanError, UsageError
from replan.events.types import Event
from replan.failures import describe
from replan.ports.agent import Agent, TurnOptions, UserInput
from replan.ports.ownership import as_owner, unowned
from replan.ports.session_store import (
    ContextStore,
    HistoryPage,
    SessionRecord,
    SessionStore,
    SessionTurn,
)
from replan.ports.storage import Storage
from replan.sessions.client.kept_turn import (
    KeptTurn,
    UndoneTurn,
    check_agent,
    given_digest,
    recorded_result,
    title_of,
    with_version,
)
from replan.sessions.client.user_sessions import UserSessions, at_work, sessions_of
from replan.sessions.request import read_input
from replan.sessions.session_runs import labels_of, run_in
from replan.sessions.stateless_agent import KeptAgent, read_context
from replan.state.limits import RunSettings
from replan.state.session.context import AgentContext, AgentResult

logger = logging.getLogger(__name__)


class ClientAgentAdapter:
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
        storage = store if isinstance(store, Storage) else None
        kept_in = None if storage is None else getattr(agent, "kept_in", None)
        self._is_kept = kept_in is not None
        self._agent: Agent = agent if kept_in is None else kept_in(storage)
        self._agent_name = agent_name
        self._behind = set[asyncio.Task[None]]()  # summaries that are being written
        self._sessions = UserSessions(
            store=sessions_of(store),
            storage=storage,
            clock=clock or (lambda: datetime.now(UTC)),
            new_id=new_id or (lambda: secrets.token_hex(16)),
            tenant=tenant,
            user=user,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Wait for the summaries that are being written after answers."""
        while self._behind:
            await asyncio.wait(set(self._behind))

    def as_user(self, user: str, tenant: str = "") -> Self:
        """Return a client of another user with the same store and the same agent."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._sessions = replace(self._sessions, tenant=tenant, user=user)
        return other

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
        async with self._sessions.owned(self._sessions.key(session_id)):
            turn = await self._turn(session_id, user_input, turn_id, options, edit=edit)
            if isinstance(turn, AgentResult):
                return turn
            turn_options = self._options(turn, options)
            result = await self._agent.process(user_input, turn.context, **turn_options)
            return await self._keep(turn, result)

    async def stream(
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
        async with self._sessions.held(self._sessions.key(session_id)) as owner:
            with at_work(owner):
                turn = await self._turn(session_id, user_input, turn_id, options, edit=edit)
            if isinstance(turn, AgentResult):
                yield turn
                return
            turn_options = self._options(turn, options)
            parts = as_owner(owner, self._agent.stream(user_input, turn.context, **turn_options))
            async with aclosing(parts) as given:
                async for part in given:
                    if not isinstance(part, AgentResult):
                        yield part
                        continue
                    with at_work(owner):
                        result = await self._keep(turn, part)
                    yield result

    async def export(self, session_id: str) -> AgentContext:
        """Return a session as a value; `to_dict` makes JSON of it.

        Raises:
            InputError: There is no such session.
        """
        return (await self._sessions.found(self._sessions.key(session_id))).context

    async def adopt(self, context: AgentContext | Mapping[str, Any]) -> int:
        """Store an exported session, or update a stored one to its newer version; return it.

        Args:
            context: The session, or a dictionary that `AgentContext.from_dict` reads.

        Raises:
            ContextError: It cannot be used; names every bad field.
            SessionConflictError: The stored session is not older than the exported one.
            SessionBusyError: Another client takes a turn of the session.
        """
        new = context if isinstance(context, AgentContext) else await read_context(context)
        return await self._sessions.adopt(new)

    async def history(
        self, session_id: str, *, before: int | None = None, limit: int = 50
    ) -> HistoryPage:
        """Return a page of what was said, the newest first; `page.before` leads to the next page.

        Args:
            session_id: The session.
            before: `before` of the page that was read last; None for the newest messages.
            limit: How many messages at most.

        Raises:
            InputError: There is no such session.
        """
        key = self._sessions.key(session_id)
        await self._sessions.found(key)
        return await self._sessions.store.history(key, before, limit)

    async def sessions(self, limit: int = 20) -> list[SessionRecord]:
        """Return the user's sessions, the most recently used first."""
        of = self._sessions
        return list(await of.store.recent(of.tenant, of.user, limit))

    async def undo(self, session_id: str) -> UndoneTurn:
        """Undo the newest turn: the session is as it was before. Effects outside remain.

        Returns:
            What was taken back: the messages, and the calls of tools whose effects stay.

        Raises:
            InputError: There is no such session, or no turn.
            SessionBusyError: Another client takes a turn of the session.
        """
        return await self._sessions.undo(self._sessions.key(session_id))

    async def delete(self, session_id: str) -> None:
        """Delete a session with everything in it: its turns, their runs, events and texts.

        Raises:
            InputError: There is no such session.
            SessionBusyError: Another client takes a turn of the session.
        """
        key = self._sessions.key(session_id)
        await self._sessions.found(key)
        await self._sessions.remove(key)

    async def expire(self, before: datetime, *, everybody: bool = False) -> int:
        """Delete the sessions whose newest turn ended before a time; return how many there were.

        A session with a turn in progress stays.

        Args:
            before: The time, with a time zone.
            everybody: Whether to include the sessions of all tenants and users.
        """
        return await self._sessions.expire(before, everybody=everybody)

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
        sessions, key = self._sessions, self._sessions.key(session_id)
        try:
            read_input(user_input)
        except UsageError as error:
            return AgentResult(success=False, response="", error=describe(error))
        given = given_digest(user_input, is_new=bool(options.get("new_request")), is_edit=edit)
        if turn_id is not None and (problem := unstorable(turn_id)):
            raise InputError(f"The turn_id cannot be kept. {problem}")
        known = None if turn_id is None else await sessions.store.turn(key, turn_id)
        if known is not None:
            return recorded_result(known, given)
        now = await sessions.now(key)
        check_agent(now.context, self._agent_name)
        turn = KeptTurn(
            key=key,
            turn_id=turn_id or sessions.new_id(),
            given=given,
            title=title_of(user_input),
            context=now.context,
            version=now.version,
            agent=self._agent_name,
        )
        if not edit:
            return turn
        before = await sessions.before(key, now)
        await sessions.forget_run(key, before.context, turn.name)
        return replace(turn, context=before.context, takes_back=now.newest)

    async def _keep(self, turn: KeptTurn, result: AgentResult) -> AgentResult:
        """Keep a turn; the summary of the session is written behind it."""
        kept = await turn.keep(result, self._sessions.store, self._sessions.clock())
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
                turn_id=self._sessions.new_id(),
                at=self._sessions.clock(),
                stage=str(result.metadata["stage"]),
                run_id=run_id,
                updates=with_version(updates, version + 1),
            )
            async with self._sessions.owned(turn.key):
                await self._sessions.store.append(turn.key, summary, version)
        except ReplanError as error:
            # The next one covers what this one would have.
            logger.info("summary not kept", extra={"run_id": run_id, "error": str(error)})

    def _options(self, turn: KeptTurn, options: TurnOptions) -> TurnOptions:
        """The options of the agent: whose the run is, and its name."""
        all_options: TurnOptions = {**options, "run_id": options.get("run_id") or turn.name}
        begins = options.get("new_request") or not run_in(turn.context)
        settings = options.get("settings") or (RunSettings() if begins else None)
        tenant, user = self._sessions.tenant, self._sessions.user
        if settings is not None and (tenant or user):
            all_options["settings"] = settings.replace(tenant=tenant, user=user)
        if self._is_kept:
            all_options["labels"] = {**options.get("labels", {}), **labels_of(turn.key)}
        return all_options
