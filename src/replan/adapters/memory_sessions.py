"""Sessions in memory: they live as long as the process."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from replan.errors import SessionConflictError
from replan.ports.session_store import (
    HistoryPage,
    KeptSession,
    SessionKey,
    SessionRecord,
    SessionTurn,
)
from replan.state.session.context import AgentContext, Message


@dataclass(frozen=True)
class _Session:
    """A session: after each turn its status, which shares with the turn before what stayed."""

    begun: datetime
    turns: list[SessionTurn] = field(default_factory=list[SessionTurn])
    versions: list[KeptSession] = field(default_factory=list[KeptSession])


class MemorySessions:
    """A `SessionStore` in memory."""

    def __init__(self) -> None:
        self._sessions: dict[SessionKey, _Session] = {}

    async def load(self, key: SessionKey, version: int | None = None) -> KeptSession | None:
        session = self._sessions.get(key)
        return None if session is None else session.versions[-1 if version is None else version]

    async def begin(self, key: SessionKey, at: datetime) -> None:
        self._sessions.setdefault(key, _begun(key, at))

    async def append(self, key: SessionKey, turn: SessionTurn, version: int) -> None:
        session = self._sessions.get(key) or _begun(key, turn.at)
        newest = session.versions[-1]
        if newest.version != version:
            raise SessionConflictError(key.session_id, version, newest.version)
        number, before = version + 1, newest
        if turn.takes_back is not None:
            before = session.versions[turn.takes_back - 1]
        context = before.context.apply(turn.updates)
        session.turns.append(turn.replace(updates={}))
        session.versions.append(KeptSession(context, number, turn.newest(number, before.newest)))
        self._sessions[key] = session

    async def turn(self, key: SessionKey, turn_id: str) -> SessionTurn | None:
        turns = self._sessions[key].turns if key in self._sessions else []
        return next((each for each in turns if each.turn_id == turn_id), None)

    async def history(self, key: SessionKey, before: int | None, limit: int) -> HistoryPage:
        kept = await self.load(key)
        return page_of(() if kept is None else kept.context.dialogue_history, before, limit)

    async def recent(self, tenant: str, user: str, limit: int) -> Sequence[SessionRecord]:
        own = [key for key in self._sessions if key[:2] == (tenant, user)]
        records = [_record(key, self._sessions[key]) for key in own]
        return sorted(records, key=lambda each: each.updated_at, reverse=True)[:limit]

    async def unused_since(self, at: datetime) -> Sequence[SessionKey]:
        return [key for key, session in self._sessions.items() if _used(session) < at]

    async def remove(self, key: SessionKey) -> None:
        self._sessions.pop(key, None)


def page_of(history: Sequence[Message], before: int | None, limit: int) -> HistoryPage:
    """A page of a history that is there as a whole."""
    end = len(history) if before is None else max(0, min(before, len(history)))
    start = max(0, end - limit)
    return HistoryPage(tuple(history[start:end]), start or None)


def _begun(key: SessionKey, at: datetime) -> _Session:
    empty = KeptSession(AgentContext(session_id=key.session_id), 0, 0)
    return _Session(begun=at, versions=[empty])


def _used(session: _Session) -> datetime:
    return session.turns[-1].at if session.turns else session.begun


def _record(key: SessionKey, session: _Session) -> SessionRecord:
    turns = session.turns
    fields = {"title": turns[0].title, "stage": turns[-1].stage} if turns else {}
    return SessionRecord(
        session_id=key.session_id,
        version=session.versions[-1].version,
        created_at=session.begun,
        updated_at=_used(session),
        **fields,
    )
