"""Sessions in your own store, of which no more is asked than to load and to update."""

import asyncio
import inspect
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Never, cast

from pydantic import JsonValue

from replan.adapters.memory_sessions import page_of
from replan.errors import InputError, SessionConflictError
from replan.ports.session_store import (
    VERSION,
    ContextStore,
    HistoryPage,
    KeptSession,
    SessionKey,
    SessionRecord,
    SessionTurn,
)
from replan.state.session.context import AgentContext
from replan.values import restored

_TURN = "newest_turn"
_OWNER = "owner"


class ContextSessions:
    """A `SessionStore` over the two methods of a `ContextStore`.

    It cannot hold a session, so two clients may take a turn at once: the version tells, and the
    second one is refused. Between this look and the update only clients of this process wait for
    each other.
    """

    def __init__(self, store: ContextStore) -> None:
        self._store = store
        self._turn = asyncio.Lock()

    async def load(self, key: SessionKey, version: int | None = None) -> KeptSession | None:
        context = await self._context(key)
        if context is None or not _belongs(context, key):
            return None
        if version is not None:
            self._cannot("go back to an earlier turn")
        number = _version_of(context)
        metadata = context.session_metadata.items()
        shown = {name: each for name, each in metadata if name not in (_TURN, _OWNER)}
        return KeptSession(context.replace(session_metadata=shown), number, number)

    async def begin(self, key: SessionKey, at: datetime) -> None:
        """Nothing: such a store lists no sessions, so that none is found by having begun."""

    async def append(self, key: SessionKey, turn: SessionTurn, version: int) -> None:
        if turn.takes_back is not None:
            self._cannot("take back a turn")
        own = turn.replace(updates={}).model_dump(mode="json")
        metadata = dict(cast("dict[str, JsonValue]", turn.updates.get("session_metadata", {})))
        metadata[_TURN] = {"set": own}
        if owner := _owner_of(key):
            metadata[_OWNER] = {"set": owner}
        updates = {**turn.updates, "session_metadata": cast("JsonValue", metadata)}
        async with self._turn:
            context = await self._context(key)
            if context is not None and not _belongs(context, key):
                raise InputError(f"The id '{key.session_id}' is taken. Use another one.")
            found = 0 if context is None else _version_of(context)
            if found != version:
                raise SessionConflictError(key.session_id, version, found)
            await _call(self._store.update_session_context, key.session_id, updates)

    async def turn(self, key: SessionKey, turn_id: str) -> SessionTurn | None:
        context = await self._context(key)
        if context is None or not _belongs(context, key) or _TURN not in context.session_metadata:
            return None
        turn = restored(SessionTurn, context.session_metadata[_TURN])
        return turn if turn.turn_id == turn_id else None

    async def history(self, key: SessionKey, before: int | None, limit: int) -> HistoryPage:
        kept = await self.load(key)
        return page_of(() if kept is None else kept.context.dialogue_history, before, limit)

    async def recent(self, tenant: str, user: str, limit: int) -> Sequence[SessionRecord]:
        self._cannot("list sessions")

    async def unused_since(self, at: datetime) -> Sequence[SessionKey]:
        self._cannot("list sessions")

    async def remove(self, key: SessionKey) -> None:
        self._cannot("remove a session")

    async def _context(self, key: SessionKey) -> AgentContext | None:
        found = await _call(self._store.load_session_context, key.session_id)
        if found is None or isinstance(found, AgentContext):
            return found
        # What turns made comes back, however long the session has lived.
        return AgentContext.from_dict(found, most_bytes=sys.maxsize)

    def _cannot(self, what: str) -> Never:
        name = type(self._store).__name__
        raise InputError(f"{name} can load and update only, not {what}. Use open_storage for it.")


async def _call(method: Callable[..., object], *arguments: object) -> Any:
    """Call a method that may be asynchronous; another one keeps no loop waiting."""
    if inspect.iscoroutinefunction(method):
        return await method(*arguments)
    found = await asyncio.to_thread(method, *arguments)
    return await found if inspect.isawaitable(found) else found


def _version_of(context: AgentContext) -> int:
    number = context.session_metadata.get(VERSION)
    return number if isinstance(number, int) and not isinstance(number, bool) else 0


def _owner_of(key: SessionKey) -> list[JsonValue] | None:
    return [key.tenant, key.user] if key.tenant or key.user else None


def _belongs(context: AgentContext, key: SessionKey) -> bool:
    return context.session_metadata.get(_OWNER) == _owner_of(key)
