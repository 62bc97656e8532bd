"""How runs and steps end, which files they leave, and why a reply is incomplete or missing."""

from collections.abc import Mapping
from enum import StrEnum, nonmember
from typing import Literal

from replan.base.values import Value

Outcome = Literal["answered", "completed", "partial", "failed", "rejected"]
"""How a run ended: a simple answer, a finished plan, a part of it, nothing of it, or a plan that a
person did not want to run."""

INCOMPLETE: tuple[Outcome, ...] = ("partial", "failed")
"""The outcomes of a run that is over and did not do all."""

RunOutcome = Literal["running", "waiting", "interrupted", Outcome]
"""The status of a run: running, waiting for a person, stopped in the middle, or how it ended."""

NOT_OVER: tuple[RunOutcome, ...] = ("running", "waiting", "interrupted")
"""The outcomes with which a run can still continue."""

AttemptOutcome = Literal["done", "failed", "cancelled", "waiting", "unknown_outcome"]
"""How an attempt of a step ended; one without a recorded end is in doubt."""


class TaskComplexity(StrEnum):
    """How hard a request is."""

    SIMPLE = "simple"
    MODERATE = "moderate"
    COMPLEX = "complex"

    unknown = nonmember("complex")


class ExecutionStatus(StrEnum):
    """How a specialist's work ended."""

    SUCCESS = "success"
    FAILED = "failed"
    PARTIAL = "partial"

    # Nothing counts as done that may not be.
    unknown = nonmember("failed")


REPLY_LENGTH = "reply_length"
"""A reply that reached its length."""

CONTENT_FILTER = "content_filter"
"""A reply that its provider withheld, or that its model refused."""

UNFINISHED = "unfinished_reply"
"""A reply that ends within its JSON, though its server says that it is whole."""

NO_ANSWER = "no_answer"
"""The host's model gave no answer: it failed, or its reply was empty."""

CUTS: Mapping[str, str] = {
    REPLY_LENGTH: "the reply was cut off at its length limit",
    UNFINISHED: "the reply ends in the middle of its JSON",
    CONTENT_FILTER: "a content filter cut the reply off",
    NO_ANSWER: "the host's model gave no answer",
}
"""What each of them is called for people; the names are in `limit_reached`, too."""


def answer_warning(cut: str, why: str = "") -> str:
    """Say what is wrong with the answer of a run, and why."""
    if cut != NO_ANSWER:
        return f"The answer is incomplete: {CUTS[cut]}."
    end = "" if not why or why.endswith((".", "!", "?")) else "."
    reason = f": {why}{end}" if why else "."
    return f"The host's model gave no answer, so the results are shown{reason}"


def with_cut(text: str, cut: str) -> str:
    # In front: who shows an excerpt shows the beginning.
    return f"[Incomplete: {cut_in_words(cut)}.]\n\n{text}" if cut else text


def cut_in_words(cut: str) -> str:
    """Explain why something is incomplete: its own cut, or else the limit that was reached."""
    return CUTS.get(cut, f"the limit {cut} was reached")


class Artifact(Value):
    """A file that a step left in the workspace.

    Attributes:
        path: The file, relative to the workspace.
        title: What it is, for people.
        media_type: For example `text/markdown`.
    """

    path: str
    title: str = ""
    media_type: str = "application/octet-stream"
