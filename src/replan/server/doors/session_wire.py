"""The schemas of requests about sessions, and of their answers."""

from typing import Any, ClassVar

from pydantic import Field, JsonValue

from replan.ports.session_store import SessionRecord
from replan.server.bodies import NAME, ApiModel, FileBody, with_files
from replan.state.limits import RunSettings


class TurnBody(ApiModel):
    """One turn of a session.

    Attributes:
        input: What the user says; or answers by the keys of what is asked; null continues work
            that was stopped.
        files: Files that go with a text.
        team: The team that takes the turn; may be left out where there is one.
        turn_id: A name of your own for the turn: sent again, it is the same turn with the same
            result.
        new_request: Whether a new request begins, and what is open is abandoned.
        settings: What the run is to do otherwise than its team; it can only tighten.
    """

    input: str | dict[str, JsonValue] | None = None
    files: tuple[FileBody, ...] = Field(default=(), max_length=20)
    team: str = ""
    turn_id: str | None = Field(default=None, pattern=NAME)
    new_request: bool = False
    settings: RunSettings | None = None

    @property
    def said(self) -> Any:
        """The user's message, as the agent takes it."""
        return with_files(self.input, self.files) if isinstance(self.input, str) else self.input


class ImportBody(ApiModel):
    """A session that was exported.

    Attributes:
        context: The session, as an export gave it.
    """

    most_entries: ClassVar[int] = 100_000  # in a list of it: a history may be as long

    context: dict[str, JsonValue]


class SessionsQuery(ApiModel):
    """Which sessions are listed.

    Attributes:
        limit: How many, the one that was used last first.
    """

    limit: int = Field(default=20, ge=1, le=200)


class HistoryQuery(ApiModel):
    """Which messages of a session are reported.

    Attributes:
        before: `before` of the page that was read last; the newest messages without it.
        limit: How many.
    """

    before: int | None = Field(default=None, ge=0, le=2**53)
    limit: int = Field(default=50, ge=1, le=200)


class SessionList(ApiModel):
    """Sessions of one person.

    Attributes:
        sessions: The sessions, the one that was used last first.
    """

    sessions: tuple[SessionRecord, ...]


class Session(ApiModel):
    """A session as a value.

    Attributes:
        context: The session, for an import.
    """

    context: dict[str, JsonValue]


class ImportedSession(ApiModel):
    """A session that was imported.

    Attributes:
        session_id: The session.
        version: Its version here.
    """

    session_id: str
    version: int
