"""Sessions in your own store, of which no more is asked than to load and to update."""

import asyncio
import inspect
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import Any, Never, cast
from weakref import WeakKeyDictionary, WeakValueDictionary

from pydantic import JsonValue

from replan.base.errors import InputError, SessionBusyError, SessionConflictError
from replan.base.values import restored
from replan.ports.session_store import (
    ContextStore,
    HistoryPage,
    KeptSession,
    SessionKey,
    SessionRecord,
    SessionTurn,
    version_in,
)
from replan.state.session.context import AgentContext, Message, checked_session

LONGEST_WAIT = 600.0
"""Seconds for which a turn waits for the others of its session."""

_Locks = WeakValueDictionary[tuple[asyncio.AbstractEventLoop, str], asyncio.Lock]
_LOCKS = WeakKeyDictionary[ContextStore, _Locks]()

_TURN = "newest_turn"
_OWNER = "owner"


class ContextSessions:
    """A `SessionStore` over the two methods of a `ContextStore`.

    Clients of one process take turns. It cannot hold a session against other processes: there, the
    version tells that two took a turn at once, and the second one is refused.
    """

    def __init__(self, store: ContextStore) -> None:
        self._store = store
        self._locks = _Locks()
        # Without a weak reference to such a store, its clients do not know each other.
        with suppress(TypeError):
            self._locks = _LOCKS.setdefault(store, self._locks)

    @asynccontextmanager
    async def held(self, key: SessionKey) -> AsyncGenerator[None]:
        """Hold a session among the clients of this process.

        Raises:
            SessionBusyError: Another one has held it for all the time that may be waited.
        """
        place = (asyncio.get_running_loop(), key.session_id)
        lock = self._locks.setdefault(place, asyncio.Lock())
        try:
            async with asyncio.timeout(LONGEST_WAIT):
                await lock.acquire()
        except TimeoutError:
            raise SessionBusyError(key.session_id) from None
        try:
            yield
        finally:
            lock.release()

    async def load(self, key: SessionKey, version: int | None = None) -> KeptSession | None:
        context = await self._context(key)
        if context is None or not _belongs(context, key):
            return None
        if version is not None:
            self._cannot("go back to an earlier turn")
        number = version_in(context)
        metadata = context.session_metadata.items()
        shown = {name: entry for name, entry in metadata if name not in (_TURN, _OWNER)}
        return KeptSession(context.replace(session_metadata=shown), number, number)

    async def append(self, key: SessionKey, turn: SessionTurn, version: int) -> None:
        if turn.takes_back is not None:
            self._cannot("take back a turn")
        turn_row = turn.replace(updates={}).model_dump(mode="json")
        metadata = dict(cast("dict[str, JsonValue]", turn.updates.get("session_metadata", {})))
        metadata[_TURN] = {"set": turn_row}
        if owner := _owner_of(key):
            metadata[_OWNER] = {"set": owner}
        updates = {**turn.updates, "session_metadata": cast("JsonValue", metadata)}
        context = await self._context(key)
        if context is not None and not _belongs(context, key):
            raise InputError(f"The id '{key.session_id}' is taken. Use another one.")
        stored_version = 0 if context is None else version_in(context)
        if stored_version != version:
            raise SessionConflictError(key.session_id, version, stored_version)
        await _call(self._store.update_session_context, key.session_id, updates)

    async def turn(self, key: SessionKey, turn_id: str) -> SessionTurn | None:
        context = await self._context(key)
        if context is None or not _belongs(context, key) or _TURN not in context.session_metadata:
            return None
        turn = restored(SessionTurn, context.session_metadata[_TURN])
        return turn if turn.turn_id == turn_id else None

    async def history(self, key: SessionKey, before: int | None, limit: int) -> HistoryPage:
        stored = await self.load(key)
        return _page(() if stored is None else stored.context.dialogue_history, before, limit)

    async def recent(self, tenant: str, user: str, limit: int) -> Sequence[SessionRecord]:
        self._cannot("list sessions")

    async def unused_since(self, at: datetime) -> Sequence[SessionKey]:
        self._cannot("list sessions")

    async def remove(self, key: SessionKey) -> None:
        self._cannot("remove a session")

    async def _context(self, key: SessionKey) -> AgentContext | None:
        stored = await _call(self._store.load_session_context, key.session_id)
        if stored is None:
            return None
        # What turns made comes back, however long the session has lived.
        is_context = isinstance(stored, AgentContext)
        context = stored if is_context else AgentContext.from_dict(stored, most_bytes=sys.maxsize)
        return checked_session(context, key.session_id)

    def _cannot(self, what: str) -> Never:
        name = type(self._store).__name__
        raise InputError(f"{name} can load and update only, not {what}. Use open_storage for it.")


def _page(history: Sequence[Message], before: int | None, limit: int) -> HistoryPage:
    """A page of a history that is there as a whole."""
    end = len(history) if before is None else max(0, min(before, len(history)))
    start = max(0, end - limit)
    return HistoryPage(messages=tuple(history[start:end]), before=start or None)


async def _call(method: Callable[..., object], *arguments: object) -> Any:
    """Call a method that may be asynchronous; another one keeps no loop waiting."""
    if inspect.iscoroutinefunction(method):
        return await method(*arguments)
    value = await asyncio.to_thread(method, *arguments)
    return await value if inspect.isawaitable(value) else value


def _owner_of(key: SessionKey) -> list[JsonValue] | None:
    return [key.tenant, key.user] if key.tenant or key.user else None


def _belongs(context: AgentContext, key: SessionKey) -> bool:
    return context.session_metadata.get(_OWNER) == _owner_of(key)
