"""The client of an agent: it stores the sessions, and takes each turn exactly once."""

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import (
    AbstractContextManager,
    AsyncExitStack,
    aclosing,
    asynccontextmanager,
    nullcontext,
    suppress,
)
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Self, Unpack, cast

from replan.adapters.context_sessions import ContextSessions
from replan.errors import (
    InputError,
    ReplanError,
    SessionBusyError,
    SessionConflictError,
    ThreadBusyError,
    UsageError,
)
from replan.events.types import Event
from replan.failures import describe
from replan.ports.agent import Agent, TurnOptions, UserInput
from replan.ports.ownership import Owner, as_owner, unowned
from replan.ports.session_store import (
    ContextStore,
    HistoryPage,
    KeptSession,
    SessionKey,
    SessionRecord,
    SessionStore,
    SessionTurn,
)
from replan.ports.storage import Storage
from replan.sessions.kept_turn import (
    KeptTurn,
    TakenBack,
    check_agent,
    given_digest,
    recorded_result,
    taken_back,
    title_of,
    title_of_history,
    version_in,
    with_version,
)
from replan.sessions.request import read_input
from replan.sessions.session_runs import forget_run, labels_of, remove_runs, run_in, thread_of
from replan.sessions.stateless_agent import KeptAgent, summary_in
from replan.sessions.turn_thread import place_of_threads
from replan.state.limits import RunSettings
from replan.state.session.context import AgentContext, AgentResult
from replan.texts.storable import unstorable

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
        self._storage = store if isinstance(store, Storage) else None
        self._store = _sessions_of(store)
        kept_in = None if self._storage is None else getattr(agent, "kept_in", None)
        self._is_kept = kept_in is not None
        self._agent: Agent = agent if kept_in is None else kept_in(self._storage)
        # The killed turn of a team is found by its run.
        has_runs = getattr(agent, "has_runs", True)
        self._begins_sessions = self._storage is not None and not has_runs
        self._tenant = tenant
        self._user = user
        self._agent_name = agent_name
        self._clock = clock or (lambda: datetime.now(UTC))
        self._behind = set[asyncio.Task[None]]()  # summaries that are being written
        self._new_id = new_id or (lambda: secrets.token_hex(16))

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
        other._tenant, other._user = tenant, user
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
        async with self._held(self._key(session_id)) as owner:
            with _at_work(owner):
                turn = await self._turn(session_id, user_input, turn_id, options, edit=edit)
                if isinstance(turn, AgentResult):
                    return turn
                told = self._options(turn, options)
                result = await self._agent.process(user_input, turn.context, **told)
                return await self._kept(turn, result)

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
        async with self._held(self._key(session_id)) as owner:
            with _at_work(owner):
                turn = await self._turn(session_id, user_input, turn_id, options, edit=edit)
            if isinstance(turn, AgentResult):
                yield turn
                return
            told = self._options(turn, options)
            parts = as_owner(owner, self._agent.stream(user_input, turn.context, **told))
            async with aclosing(parts) as given:
                async for part in given:
                    if not isinstance(part, AgentResult):
                        yield part
                        continue
                    with _at_work(owner):
                        result = await self._kept(turn, part)
                    yield result

    async def export(self, session_id: str) -> AgentContext:
        """Return a session as a value; `to_dict` makes JSON of it.

        Raises:
            InputError: There is no such session.
        """
        return (await self._found(self._key(session_id))).context

    async def adopt(self, context: AgentContext | Mapping[str, Any]) -> int:
        """Store an exported session, or update a stored one to its newer version; return it.

        Args:
            context: The session, or a dictionary that `AgentContext.from_dict` reads.

        Raises:
            ContextError: It cannot be used; names every bad field.
            SessionConflictError: The stored session is not older than the exported one.
            SessionBusyError: Another client takes a turn of the session.
        """
        new = context if isinstance(context, AgentContext) else AgentContext.from_dict(context)
        summary_in(new)
        key = self._key(new.session_id)
        async with self._held(key) as owner:
            with _at_work(owner):
                now = await self._store.load(key) or _begun(key)
                if now.version and version_in(new) <= now.version:
                    raise SessionConflictError(key.session_id, version_in(new), now.version)
                await self._forget_run(key, now.context)
                await self._forget_threads(key)
                before = AgentContext(session_id=key.session_id)
                turn = SessionTurn(
                    turn_id=self._new_id(),
                    at=self._clock(),
                    title=title_of_history(new),
                    stage=new.current_stage,
                    updates=with_version(before.updates_to(new), now.version + 1),
                    takes_back=1 if now.version else None,
                )
                await self._store.append(key, turn, now.version)
                return now.version + 1

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
        key = self._key(session_id)
        await self._found(key)
        return await self._store.history(key, before, limit)

    async def sessions(self, limit: int = 20) -> list[SessionRecord]:
        """Return the user's sessions, the most recently used first."""
        return list(await self._store.recent(self._tenant, self._user, limit))

    async def undo(self, session_id: str) -> TakenBack:
        """Undo the newest turn: the session is as it was before. Effects outside remain.

        Returns:
            What was taken back: the messages, and the calls of tools whose effects stay.

        Raises:
            InputError: There is no such session, or no turn.
            SessionBusyError: Another client takes a turn of the session.
        """
        key = self._key(session_id)
        async with self._held(key) as owner:
            with _at_work(owner):
                now = await self._found(key)
                before = await self._before(key, now)
                await self._forget_run(key, before.context)
                await self._forget_threads(key)
                turn = SessionTurn(
                    turn_id=self._new_id(),
                    at=self._clock(),
                    stage=before.context.current_stage,
                    takes_back=now.newest,
                    updates=with_version({}, now.version + 1),
                )
                await self._store.append(key, turn, now.version)
                return taken_back(now, before.context)

    async def delete(self, session_id: str) -> None:
        """Delete a session with everything in it: its turns, their runs, events and texts.

        Raises:
            InputError: There is no such session.
            SessionBusyError: Another client takes a turn of the session.
        """
        key = self._key(session_id)
        await self._found(key)
        await self._removed(key)

    async def expire(self, before: datetime, *, everybody: bool = False) -> int:
        """Delete the sessions whose newest turn ended before a time; return how many there were.

        A session with a turn in progress stays.

        Args:
            before: The time, with a time zone.
            everybody: Whether to include the sessions of all tenants and users.
        """
        removed = 0
        for key in await self._store.unused_since(before):
            if everybody or key[:2] == (self._tenant, self._user):
                with suppress(SessionBusyError):
                    removed += await self._removed(key, before)
        return removed

    def _key(self, session_id: str) -> SessionKey:
        # An id that no store keeps is refused by its name.
        AgentContext.from_dict({"session_id": session_id})
        return SessionKey(self._tenant, self._user, session_id)

    async def _found(self, key: SessionKey) -> KeptSession:
        found = await self._store.load(key)
        if found is None:
            problem = f"There is no session '{key.session_id}' here."
            raise InputError(f"{problem} Check its id and its user.")
        return found

    @asynccontextmanager
    async def _held(self, key: SessionKey) -> AsyncGenerator[Owner | None]:
        """Lock a session, if the store can: an answer that cannot be stored is not paid for."""
        if self._storage is None:
            yield None
            return
        async with AsyncExitStack() as stack:
            try:
                held = self._storage.holds.holding(thread_of(key))
                owner = await stack.enter_async_context(held)
            except ThreadBusyError as error:
                raise SessionBusyError(key.session_id) from error
            yield owner

    async def _turn(
        self,
        session_id: str,
        user_input: UserInput,
        turn_id: str | None,
        options: TurnOptions,
        *,
        edit: bool,
    ) -> KeptTurn | AgentResult:
        """The turn to take; its result, if it was taken before."""
        key = self._key(session_id)
        try:
            read_input(user_input)
        except UsageError as error:
            return AgentResult(success=False, response="", error=describe(error))
        given = given_digest(user_input, is_new=bool(options.get("new_request")), is_edit=edit)
        if turn_id is not None and (problem := unstorable(turn_id)):
            raise InputError(f"The turn_id cannot be kept. {problem}")
        known = None if turn_id is None else await self._store.turn(key, turn_id)
        if known is not None:
            return recorded_result(known, given)
        now = await self._store.load(key) or _begun(key)
        check_agent(now.context, self._agent_name)
        turn = KeptTurn(
            key=key,
            turn_id=turn_id or self._new_id(),
            given=given,
            title=title_of(user_input),
            context=now.context,
            version=now.version,
            agent=self._agent_name,
        )
        if not now.version and self._begins_sessions:
            await self._store.begin(key, self._clock())
        if not edit:
            return turn
        before = await self._before(key, now)
        await self._forget_run(key, before.context, turn.name)
        return replace(turn, context=before.context, takes_back=now.newest)

    async def _before(self, key: SessionKey, now: KeptSession) -> KeptSession:
        """The session before its newest turn."""
        before = await self._store.load(key, now.newest - 1) if now.newest else None
        if before is None:
            raise InputError(f"The session '{key.session_id}' has no turn to take back.")
        return before

    async def _kept(self, turn: KeptTurn, result: AgentResult) -> AgentResult:
        """Store a turn; the summary of the session is written after it."""
        kept = await turn.kept(result, self._store, self._clock())
        if kept.metadata.get("summary_due") and isinstance(self._agent, KeptAgent):
            summing_up = self._summed_up(turn, self._agent, kept)
            writing = asyncio.get_running_loop().create_task(summing_up, context=unowned())
            self._behind.add(writing)
            writing.add_done_callback(self._behind.discard)
        return kept

    async def _summed_up(self, turn: KeptTurn, agent: KeptAgent, result: AgentResult) -> None:
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
            async with self._held(turn.key) as owner:
                with _at_work(owner):
                    await self._store.append(turn.key, summary, version)
        except ReplanError as error:
            # The next one covers what this one would have.
            logger.info("summary not kept", extra={"run_id": run_id, "error": str(error)})

    def _options(self, turn: KeptTurn, options: TurnOptions) -> TurnOptions:
        """The options of the agent: the owner of the run, and its name."""
        told: TurnOptions = {**options, "run_id": options.get("run_id") or turn.name}
        begins = options.get("new_request") or not run_in(turn.context)
        settings = options.get("settings") or (RunSettings() if begins else None)
        if settings is not None and (self._tenant or self._user):
            told["settings"] = settings.replace(tenant=self._tenant, user=self._user)
        if self._is_kept:
            told["labels"] = {**options.get("labels", {}), **labels_of(turn.key)}
        return told

    async def _forget_run(self, key: SessionKey, context: AgentContext, turn: str = "") -> None:
        """Let a run begin again from what a session has of it."""
        if self._storage is not None:
            await forget_run(self._storage, key, context, turn)

    async def _forget_threads(self, key: SessionKey) -> None:
        """Let the thread of a pipeline begin again from what a session has of it."""
        if self._storage is not None:
            await self._storage.threads.forget(place_of_threads(labels_of(key)))

    async def _removed(self, key: SessionKey, before: datetime | None = None) -> bool:
        """Remove a session; not if it has been used since a time."""
        async with self._held(key) as owner:
            with _at_work(owner):
                if before and key not in await self._store.unused_since(before):
                    return False
                if self._storage is not None:
                    await remove_runs(self._storage, key)
                await self._forget_threads(key)
                # The session goes last: what is killed between can be removed again.
                await self._store.remove(key)
                if self._storage is not None:
                    await self._storage.checkpointer.adelete_thread(thread_of(key))
        return True


def _begun(key: SessionKey) -> KeptSession:
    return KeptSession(AgentContext(session_id=key.session_id), 0, 0)


def _at_work(owner: Owner | None) -> AbstractContextManager[None]:
    return owner.at_work() if owner else nullcontext()


def _sessions_of(store: Storage | SessionStore | ContextStore) -> SessionStore:
    if isinstance(store, Storage):
        return store.sessions
    if hasattr(store, "load_session_context"):
        return ContextSessions(cast("ContextStore", store))
    return cast("SessionStore", store)
