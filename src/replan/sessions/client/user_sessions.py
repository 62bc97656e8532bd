"""The sessions of a user in a store: held, read, brought in, taken back and removed."""

from collections.abc import AsyncGenerator, Callable
from contextlib import (
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    nullcontext,
    suppress,
)
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from replan.errors import InputError, SessionBusyError, SessionConflictError, ThreadBusyError
from replan.ports.ownership import Owner
from replan.ports.session_store import (
    ContextStore,
    KeptSession,
    SessionKey,
    SessionStore,
    SessionTurn,
)
from replan.ports.storage import Storage
from replan.sessions.client.kept_turn import (
    UndoneTurn,
    taken_back,
    title_of_history,
    version_in,
    with_version,
)
from replan.sessions.context_sessions import ContextSessions
from replan.sessions.session_runs import forget_run, remove_runs, thread_of
from replan.sessions.stateless_agent import summary_in
from replan.state.session.context import AgentContext, checked_session


@dataclass(frozen=True, kw_only=True)
class UserSessions:
    """The sessions of a user, and what a storage has beside them."""

    store: SessionStore
    storage: Storage | None  # holds sessions, and has the runs of their turns
    clock: Callable[[], datetime]
    new_id: Callable[[], str]  # a new id for a turn
    tenant: str = ""
    user: str = ""

    def key(self, session_id: str) -> SessionKey:
        # An id that no store keeps is refused by its name.
        AgentContext.from_dict({"session_id": session_id})
        return SessionKey(self.tenant, self.user, session_id)

    async def found(self, key: SessionKey) -> KeptSession:
        found = await self._loaded(key)
        if found is None:
            problem = f"There is no session '{key.session_id}' here."
            raise InputError(f"{problem} Check its id and its user.")
        return found

    async def now(self, key: SessionKey) -> KeptSession:
        """The session; one that is not there begins."""
        begun = KeptSession(AgentContext(session_id=key.session_id), 0, 0)
        return await self._loaded(key) or begun

    async def before(self, key: SessionKey, now: KeptSession) -> KeptSession:
        """The session before its newest turn."""
        before = await self._loaded(key, now.newest - 1) if now.newest else None
        if before is None:
            raise InputError(f"The session '{key.session_id}' has no turn to take back.")
        return before

    async def _loaded(self, key: SessionKey, version: int | None = None) -> KeptSession | None:
        found = await self.store.load(key, version)
        if found is not None:
            checked_session(found.context, key.session_id)
        return found

    @asynccontextmanager
    async def held(self, key: SessionKey) -> AsyncGenerator[Owner | None]:
        """Hold a session, where the store can: nobody pays for an answer that cannot be kept."""
        if self.storage is None:
            own = self.store.held(key) if isinstance(self.store, ContextSessions) else None
            async with own or nullcontext():
                yield None
            return
        async with AsyncExitStack() as stack:
            try:
                held = self.storage.holds.lock(thread_of(key))
                owner = await stack.enter_async_context(held)
            except ThreadBusyError as error:
                raise SessionBusyError(key.session_id) from error
            yield owner

    @asynccontextmanager
    async def owned(self, key: SessionKey) -> AsyncGenerator[None]:
        """Hold a session, and do what is inside as its owner."""
        async with self.held(key) as owner:
            with at_work(owner):
                yield

    async def adopt(self, new: AgentContext) -> int:
        """Take over a session, or bring it to its newer version; give this."""
        summary_in(new)
        key = self.key(new.session_id)
        async with self.owned(key):
            now = await self.now(key)
            if now.version and version_in(new) <= now.version:
                raise SessionConflictError(key.session_id, version_in(new), now.version)
            await self.forget_run(key, now.context)
            before = AgentContext(session_id=key.session_id)
            turn = SessionTurn(
                turn_id=self.new_id(),
                at=self.clock(),
                title=title_of_history(new),
                stage=new.current_stage,
                updates=with_version(before.updates_to(new), now.version + 1),
                takes_back=1 if now.version else None,
            )
            await self.store.append(key, turn, now.version)
            return now.version + 1

    async def undo(self, key: SessionKey) -> UndoneTurn:
        """Take back the newest turn of a session."""
        async with self.owned(key):
            now = await self.found(key)
            before = await self.before(key, now)
            await self.forget_run(key, before.context)
            turn = SessionTurn(
                turn_id=self.new_id(),
                at=self.clock(),
                stage=before.context.current_stage,
                takes_back=now.newest,
                updates=with_version({}, now.version + 1),
            )
            await self.store.append(key, turn, now.version)
            return taken_back(now, before.context)

    async def expire(self, before: datetime, *, everybody: bool) -> int:
        """Remove the sessions whose newest turn ended before a time; give how many there were."""
        removed = 0
        for key in await self.store.unused_since(before):
            if everybody or key[:2] == (self.tenant, self.user):
                with suppress(SessionBusyError):
                    removed += await self.remove(key, before)
        return removed

    async def remove(self, key: SessionKey, before: datetime | None = None) -> bool:
        """Remove a session; not if it has been used since a time."""
        async with self.owned(key):
            if before and key not in await self.store.unused_since(before):
                return False
            if self.storage is not None:
                await remove_runs(self.storage, key)
            # The session goes last: what is killed between can be removed again.
            await self.store.remove(key)
            if self.storage is not None:
                await self.storage.checkpointer.adelete_thread(thread_of(key))
        return True

    async def forget_run(self, key: SessionKey, context: AgentContext, turn: str = "") -> None:
        """Let a run begin anew from what a session has of it."""
        if self.storage is not None:
            await forget_run(self.storage, key, context, turn)


def at_work(owner: Owner | None) -> AbstractContextManager[None]:
    """Do something as the owner of a session, where somebody holds it."""
    return owner.at_work() if owner else nullcontext()


def sessions_of(store: Storage | SessionStore | ContextStore) -> SessionStore:
    """What keeps the sessions of a store."""
    if isinstance(store, Storage):
        return store.sessions
    if hasattr(store, "load_session_context"):
        return ContextSessions(cast("ContextStore", store))
    return cast("SessionStore", store)
