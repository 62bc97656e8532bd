"""The schemas of requests about runs: each model reads and describes one."""

import base64
import binascii
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, JsonValue

from replan.base.declared.part import field_error
from replan.base.texts.bounds import PLAN
from replan.base.texts.signs import is_hidden
from replan.base.values import Value
from replan.log.labels import MOST as MOST_LABELS
from replan.log.period import By
from replan.ports.run_book import RunOutcome
from replan.runs.asked.attached import LARGEST, block_of
from replan.state.limits import RunSettings


class ApiModel(Value):
    """A body, a query or an answer: built when the server starts, so that no request waits."""

    model_config = ConfigDict(defer_build=False)


NAME = r"^[A-Za-z0-9][A-Za-z0-9._:~-]{0,99}$"
"""What a client may call its runs, turns and sessions."""

MOST_ANSWERS = 1_000
"""The answers of a request."""


def checked_file_name(name: str) -> str:
    """Check the name of a file from outside, because people and models read it in texts.

    Raises:
        ValueError: It is not a name of a file, or shows as something else than it is.
    """
    if not name.strip() or name in (".", "..") or any(sign in name for sign in "/\\"):
        raise ValueError("it is not the name of a file; write one such as notes.txt")
    for sign in name:
        if is_hidden(sign):
            problem = f"it has the invisible character U+{ord(sign):04X}"
            raise ValueError(f"{problem}; leave the character out")
    return name


def _decodable(text: str) -> str:
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error:
        fix = "Send the bytes of the file in base64."
        raise field_error("bad_value", "It is not base64.", fix) from None
    return text


class FileBody(ApiModel):
    """A file that goes with a task: a text, a picture or a PDF.

    Attributes:
        name: Its name; the ending says what it is.
        content: What it holds, in base64.
    """

    name: Annotated[str, AfterValidator(checked_file_name)] = Field(min_length=1, max_length=200)
    content: Annotated[str, AfterValidator(_decodable)] = Field(max_length=LARGEST * 4 // 3 + 4)

    @property
    def block(self) -> dict[str, Any]:
        """The file as a block of a message."""
        shown = f"The file {self.name}"
        return block_of(self.name, base64.b64decode(self.content), shown, "Send less of it.")


def with_files(text: str, files: Sequence[FileBody]) -> Any:
    """What is said, with the files that go with it."""
    if not files:
        return text
    return [{"type": "text", "text": text}, *(file.block for file in files)]


class StartBody(ApiModel):
    """A new run: a task, a plan, or both.

    Attributes:
        task: What to do.
        plan: A plan document to carry out.
        files: Files that go with the task.
        team: The name of the team; may be left out where there is one.
        run_id: A name of your own for the run: the same request under the same name is the same
            run, however often it is sent.
        title: A title for lists.
        labels: What the run can be found by; no secrets. `team`, `tenant`, `token`, `user` and
            `session` are the server's.
        settings: What this run is to do otherwise than its team; it can only tighten.
        answers: Answers to questions that may be asked, by key or step.
        tokens: Whether texts are reported piece by piece to anyone who follows the run.
    """

    task: str = Field(default="", max_length=1_000_000)
    plan: str | None = None
    files: tuple[FileBody, ...] = Field(default=(), max_length=20)
    team: str = ""
    run_id: str | None = Field(default=None, pattern=NAME)
    title: str = Field(default="", max_length=200)
    labels: dict[str, str] = Field(default_factory=dict[str, str], max_length=MOST_LABELS)
    settings: RunSettings | None = None
    answers: dict[str, JsonValue] = Field(
        default_factory=dict[str, JsonValue], max_length=MOST_ANSWERS
    )
    tokens: bool = False

    @property
    def input(self) -> dict[str, Any]:
        """What the run begins with."""
        given: dict[str, Any] = {}
        if self.task.strip() or self.files:
            given["messages"] = [("user", with_files(self.task, self.files))]
        if self.plan is not None:
            given["plan"] = self.plan
        if self.answers:
            given["answers"] = self.answers
        return given


class AnswerBody(ApiModel):
    """Answers of a person, by the keys of what the run waits for.

    Attributes:
        answers: Each answer under its key; the beginning of a key is enough. For a plan or a call
            of a tool: `approve`, `reject: WHY`, or a decision with `action`. Beside `action` or
            `answer`, a `fingerprint` names what was shown.
    """

    answers: dict[str, JsonValue] = Field(min_length=1, max_length=MOST_ANSWERS)


class StopBody(ApiModel):
    """How a run is stopped.

    Attributes:
        force: Whether running steps get no time to end.
    """

    force: bool = False


class PlanBody(ApiModel):
    """An edited plan of a run.

    Attributes:
        plan: The whole edited document.
        version: The version of the plan that the edit was made from: `plan_version` of the run.
    """

    plan: str = Field(max_length=PLAN.characters)
    version: int = Field(ge=1)


class MessageBody(ApiModel):
    """What the host of a run is told.

    Attributes:
        text: What it should know.
    """

    text: str = Field(min_length=1, max_length=1_000_000)


class ResumeBody(ApiModel):
    """How a run is resumed.

    Attributes:
        settings: Changed settings, such as a larger limit within the team's.
    """

    settings: RunSettings | None = None


class CorrectionBody(ApiModel):
    """A step that is done again, or left out.

    Attributes:
        step: The step.
        run_id: A name for the new run, where one begins since this one is over.
        settings: Changed settings.
        allow_repeat: Whether a new run may repeat work that must not happen twice.
    """

    step: int = Field(ge=1)
    run_id: str | None = Field(default=None, pattern=NAME)
    settings: RunSettings | None = None
    allow_repeat: bool = False


class RunsQuery(ApiModel):
    """Which runs are listed.

    Attributes:
        team: Those of this team.
        label: Those with these labels, each NAME:VALUE; repeatable.
        outcome: Those that are so; repeatable.
        since: Those that began then or later.
        limit: How many, the newest first.
        cursor: Those that come after this run: `next` of the page before.
    """

    team: str | None = None
    label: tuple[str, ...] = Field(default=(), max_length=20)
    outcome: tuple[RunOutcome, ...] = ()
    since: datetime | None = None
    limit: int = Field(default=20, ge=1, le=200)
    cursor: str | None = None


class StatsQuery(ApiModel):
    """Which runs are added up, and by what.

    Attributes:
        by: What they are added up by.
        since: Those that began then or later; without it all of them, the newest 2,000 at most.
    """

    by: By = "day"
    since: datetime | None = None


class EventsQuery(ApiModel):
    """Which events are reported.

    Attributes:
        after: The number of the last known event. A stream's `Last-Event-ID` counts before it.
        limit: How many, as JSON.
        tokens: Whether a stream tells pieces of texts, too, if the run was begun with `tokens`.
    """

    after: int = Field(default=0, ge=0, le=2**53)
    limit: int = Field(default=1_000, ge=1, le=10_000)
    tokens: bool = False


class EmptyRequest(ApiModel):
    """A request without fields."""
