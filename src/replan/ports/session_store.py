"""The store of sessions: turn by turn, each with its changes, and never in part."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from pydantic import Field, JsonValue

from replan.base.values import Value
from replan.state.session.context import AgentContext, Message

VERSION = "version"
"""The entry of a context's `session_metadata` with the number of the session's newest turn."""

AGENT = "agent"  # the entry of `session_metadata` with the name of the agent that takes the turns


def version_in(context: AgentContext) -> int:
    """The version of a session that its metadata names; 0 if it never had one."""
    number = context.session_metadata.get(VERSION)
    return number if isinstance(number, int) and not isinstance(number, bool) else 0


class SessionKey(NamedTuple):
    """Which session it is: an id means nothing to another tenant or user."""

    tenant: str  # the tenant; empty where there is one only
    user: str  # the user; empty where there is one only
    session_id: str


class SessionTurn(Value):
    """One stored turn of a session."""

    turn_id: str  # what distinguishes it from all other turns of the session
    at: datetime  # when it ended
    # The digest of the input, by which a repeated delivery is known; empty where nobody said
    # anything: a summary, what was taken over, or what only takes back a turn.
    given: str = ""
    title: str = ""  # what it is about, for lists; that of the first turn names the session
    stage: str = "new"  # the status of the session after it
    run_id: str = ""  # the run that did the work; empty where none did
    # What it changed of the context, for `AgentContext.apply`.
    updates: dict[str, JsonValue] = Field(default_factory=dict)
    # The result that was given, without the updates.
    result: dict[str, JsonValue] = Field(default_factory=dict)
    # The number of the turn that this one takes back, with all behind it; None for most.
    takes_back: int | None = None

    def newest(self, number: int, before: int) -> int:
        """The newest turn that can be undone, after this one with its number.

        Args:
            number: The number of this turn.
            before: What can be undone in the session of this turn.
        """
        return number if self.given else before


class KeptSession(NamedTuple):
    """A session as it is."""

    context: AgentContext  # all that is known about it
    version: int  # the number of its newest turn; a turn is appended to this version only
    newest: int  # the number of the newest turn that can be taken back; 0 if there is none


class SessionRecord(Value):
    """One session, for lists.

    Attributes:
        session_id: The session.
        title: What it is about.
        stage: Its status.
        version: How many turns were stored.
        created_at: When it began.
        updated_at: When its newest turn ended.
    """

    session_id: str
    title: str = ""
    stage: str = "new"
    version: int
    created_at: datetime
    updated_at: datetime


class HistoryPage(Value):
    """A page of the messages of a session.

    Attributes:
        messages: The messages, the oldest first.
        before: The value of `before` for the page with the earlier messages; null on the first.
    """

    messages: tuple[Message, ...]
    before: int | None


class SessionStore(Protocol):
    """Sessions by tenant, user and id. Turns are appended, and stored data never changes."""

    async def load(self, key: SessionKey, version: int | None = None) -> KeptSession | None:
        """The session as it is, or as it was at a version; None if there is none."""
        ...

    async def append(self, key: SessionKey, turn: SessionTurn, version: int) -> None:
        """Store a turn; version 0 creates the session.

        Args:
            key: The session.
            turn: The turn.
            version: The version with which the turn began.

        Raises:
            SessionConflictError: The session has another version; nothing was stored.
        """
        ...

    async def turn(self, key: SessionKey, turn_id: str) -> SessionTurn | None:
        """A stored turn, also one that was undone; without its updates."""
        ...

    async def history(self, key: SessionKey, before: int | None, limit: int) -> HistoryPage:
        """The newest messages, or those before a number; empty if there is no such session."""
        ...

    async def recent(self, tenant: str, user: str, limit: int) -> Sequence[SessionRecord]:
        """The sessions of a user, the most recently used first."""
        ...

    async def unused_since(self, at: datetime) -> Sequence[SessionKey]:
        """The sessions of everybody whose newest turn ended before a time."""
        ...

    async def remove(self, key: SessionKey) -> None:
        """Remove a session with all its turns."""
        ...


class ContextStore(Protocol):
    """A store of your own, with two methods, which may be asynchronous or not.

    It need not know about turns: the client keeps the version and the newest turn in the session's
    metadata.
    """

    def load_session_context(self, session_id: str) -> object:
        """Return the context, or its dictionary; None for a session that is not there."""
        ...

    def update_session_context(self, session_id: str, updates: dict[str, JsonValue]) -> object:
        """Apply updates to a session, as `AgentContext.apply` does; begin one that is not there."""
        ...
