"""The sessions of a user in a store: held, read, brought in, taken back and removed."""

import secrets
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from copy import copy
from datetime import UTC, datetime
from typing import Any, Self, cast

from replan.base.errors import InputError, SessionBusyError, SessionConflictError, ThreadBusyError
from replan.ports.session_store import (
    ContextStore,
    HistoryPage,
    KeptSession,
    SessionKey,
    SessionRecord,
    SessionStore,
    SessionTurn,
    version_in,
)
from replan.ports.storage import Storage
from replan.sessions.client.kept_turn import (
    UndoneTurn,
    taken_back,
    title_of_history,
    with_version,
)
from replan.sessions.context_sessions import ContextSessions
from replan.sessions.session_runs import forget_run, lock_name, remove_runs
from replan.sessions.stateless_agent import read_context, summary_in
from replan.state.session.context import AgentContext, checked_session


class UserSessions:
    """The sessions of a user in a store: read, brought in, taken back and removed."""

    def __init__(
        self,
        store: Storage | SessionStore | ContextStore,
        *,
        tenant: str = "",
        user: str = "",
        clock: Callable[[], datetime] | None = None,
        new_id: Callable[[], str] | None = None,
    ) -> None:
        """Prepare.

        Args:
            store: A storage from `open_storage`: it holds a session while something is done with
                it, and has the runs of its turns. Or a `SessionStore`, or any object with the two
                methods of `ContextStore`, asynchronous or not.
            tenant: The tenant whose sessions these are.
            user: The user whose sessions these are; other users do not find them.
            clock: Returns the time of turns, with a time zone.
            new_id: Returns a new id for a turn.
        """
        self._storage = store if isinstance(store, Storage) else None
        self._store = sessions_of(store)
        self._clock = clock or (lambda: datetime.now(UTC))
        self._new_id = new_id or (lambda: secrets.token_hex(16))
        self.tenant = tenant
        self.user = user

    def as_user(self, user: str, tenant: str = "") -> Self:
        """Return a client of another user with the same store and the same agent."""
        other = copy(self)
        other.tenant, other.user = tenant, user
        return other

    async def export(self, session_id: str) -> AgentContext:
        """Return a session as a value; `to_dict` makes JSON of it.

        Raises:
            InputError: There is no such session.
        """
        return (await self._session_on_record(self._key(session_id))).context

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
        summary_in(new)
        key = self._key(new.session_id)
        async with self._owned(key):
            now = await self._now(key)
            if now.version and version_in(new) <= now.version:
                fix = "Only a newer one is brought in. Remove the stored one to have this one."
                raise SessionConflictError(key.session_id, version_in(new), now.version, fix)
            await self._forget_run(key, now.context)
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
        await self._session_on_record(key)
        return await self._store.history(key, before, limit)

    async def sessions(self, limit: int = 20) -> list[SessionRecord]:
        """Return the user's sessions, the most recently used first."""
        return list(await self._store.recent(self.tenant, self.user, limit))

    async def undo(self, session_id: str) -> UndoneTurn:
        """Undo the newest turn: the session is as it was before. Effects outside remain.

        Returns:
            What was taken back: the messages, and the calls of tools whose effects stay.

        Raises:
            InputError: There is no such session, or no turn.
            SessionBusyError: Another client takes a turn of the session.
        """
        key = self._key(session_id)
        async with self._owned(key):
            now = await self._session_on_record(key)
            before = await self._before(key, now)
            await self._forget_run(key, before.context)
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
        await self._session_on_record(key)
        await self._remove(key)

    async def expire(self, before: datetime, *, everybody: bool = False) -> int:
        """Delete the sessions whose newest turn ended before a time; return how many there were.

        A session with a turn in progress stays.

        Args:
            before: The time, with a time zone.
            everybody: Whether to include the sessions of all tenants and users.
        """
        removed = 0
        for key in await self._store.unused_since(before):
            if everybody or key[:2] == (self.tenant, self.user):
                with suppress(SessionBusyError):
                    removed += await self._remove(key, before)
        return removed

    def _key(self, session_id: str) -> SessionKey:
        # An id that no store keeps is refused by its name.
        AgentContext.from_dict({"session_id": session_id})
        return SessionKey(self.tenant, self.user, session_id)

    async def _session_on_record(self, key: SessionKey) -> KeptSession:
        found = await self._loaded(key)
        if found is None:
            problem = f"There is no session '{key.session_id}' here."
            raise InputError(f"{problem} Check its id and its user.")
        return found

    async def _now(self, key: SessionKey) -> KeptSession:
        """The session; one that is not there begins."""
        begun = KeptSession(AgentContext(session_id=key.session_id), 0, 0)
        return await self._loaded(key) or begun

    async def _before(self, key: SessionKey, now: KeptSession) -> KeptSession:
        """The session before its newest turn."""
        before = await self._loaded(key, now.newest - 1) if now.newest else None
        if before is None:
            raise InputError(f"The session '{key.session_id}' has no turn to take back.")
        return before

    async def _loaded(self, key: SessionKey, version: int | None = None) -> KeptSession | None:
        found = await self._store.load(key, version)
        if found is not None:
            checked_session(found.context, key.session_id)
        return found

    @asynccontextmanager
    async def _owned(self, key: SessionKey) -> AsyncGenerator[None]:
        """Do what is inside as the owner of a session, where its store can be held.

        Nobody pays for an answer that cannot be kept.
        """
        if self._storage is None:
            held_session = (
                self._store.held(key) if isinstance(self._store, ContextSessions) else None
            )
            async with held_session or nullcontext():
                yield
            return
        async with AsyncExitStack() as stack:
            try:
                held = self._storage.holds.lock(lock_name(key))
                owner = await stack.enter_async_context(held)
            except ThreadBusyError as error:
                raise SessionBusyError(key.session_id) from error
            with owner.at_work():
                yield

    async def _remove(self, key: SessionKey, before: datetime | None = None) -> bool:
        """Remove a session; not if it has been used since a time."""
        async with self._owned(key):
            if before and key not in await self._store.unused_since(before):
                return False
            if self._storage is not None:
                await remove_runs(self._storage, key)
            # The session goes last: what is killed between can be removed again.
            await self._store.remove(key)
            if self._storage is not None:
                await self._storage.checkpointer.adelete_thread(lock_name(key))
        return True

    async def _forget_run(self, key: SessionKey, context: AgentContext, turn: str = "") -> None:
        """Let a run begin anew from what a session has of it."""
        if self._storage is not None:
            await forget_run(self._storage, key, context, turn)


def sessions_of(store: Storage | SessionStore | ContextStore) -> SessionStore:
    """What keeps the sessions of a store."""
    if isinstance(store, Storage):
        return store.sessions
    if hasattr(store, "load_session_context"):
        return ContextSessions(cast("ContextStore", store))
    return cast("SessionStore", store)
