"""Reading a specialist's text: an optional front matter, then the result."""

from collections.abc import Sequence

from pydantic import Field

from replan.plan.model import Value
from replan.replies.front_matter import DELIMITER, KeyLine, match_key
from replan.replies.labels import flag_of, number_of, status_of
from replan.replies.wrapping import BLANK, plain, skip_thinking, trimmed
from replan.state.results import ExecutionStatus

SPECIALIST_KEYS = frozenset(("status", "confidence", "replan_needed", "retry"))

_MAX_LINES = 40


class SpecialistReading(Value):
    """What a specialist's text says.

    Attributes:
        status: How the work ended; success where nothing is said.
        confidence: 0 to 1.
        replan_needed: Asks the host to revise the plan.
        retry: Whether another try can help.
        body: The result.
        has_front_matter: Whether the text began with a front matter that was read.
    """

    status: ExecutionStatus = ExecutionStatus.SUCCESS
    confidence: float = Field(default=1.0, ge=0, le=1)
    replan_needed: bool = False
    retry: bool = True
    body: str = ""
    has_front_matter: bool = False


def read_specialist(text: str) -> SpecialistReading:
    """Read a specialist's text, which is all body unless it certainly begins with a front matter.

    A report may begin with a line such as `status: on track` or with a front matter of its own. So
    between two `---` no value may be wrong where a label is expected, and the block stays part of
    the body if there is anything in it beside the known keys. Without `---`, one of the leading
    lines must be a status in one of its three own words.
    """
    source = plain(text)
    thinking = skip_thinking(source)
    if thinking.closed:
        source = source[thinking.end :]
    return _delimited(source) or _bare(source) or SpecialistReading(body=trimmed(source))


def _delimited(text: str) -> SpecialistReading | None:
    opened = DELIMITER.match(text)
    closed = DELIMITER.search(text, opened.end() + 1) if opened else None
    if opened is None or closed is None:
        return None
    lines = text[opened.end() + 1 : closed.start()].split("\n", _MAX_LINES)
    written = [line for line in lines if line.strip(BLANK)]
    found = [match_key(line, SPECIALIST_KEYS) for line in written]
    # What is not only front matter is somebody's text.
    body = text[closed.end() :] if written and all(found) else text
    return _reading([line for line in found if line], body)


def _bare(text: str) -> SpecialistReading | None:
    found: list[KeyLine] = []
    at = 0
    while len(found) < _MAX_LINES and at < len(text):
        end = text.find("\n", at)
        line = match_key(text[at : end if end >= 0 else len(text)], SPECIALIST_KEYS)
        if line is None or not line.is_plain:
            break
        found.append(line)
        at = end + 1 if end >= 0 else len(text)
    words = [line.value.lower() for line in found if line.key == "status"]
    if not set(words) & {str(status) for status in ExecutionStatus}:
        return None
    rest = text[at:]
    closed = DELIMITER.match(rest)
    return _reading(found, rest[closed.end() :] if closed else rest)


def _reading(found: Sequence[KeyLine], body: str) -> SpecialistReading | None:
    values = {line.key: line.value for line in found}
    status, confidence = (
        status_of(values.get("status", "")),
        number_of(values.get("confidence", "")),
    )
    replan, retry = flag_of(values.get("replan_needed", "")), flag_of(values.get("retry", ""))
    is_wrong = "status" in values and status is None
    if is_wrong or all(value is None for value in (status, confidence, replan, retry)):
        return None
    default = SpecialistReading()
    return SpecialistReading(
        status=status or default.status,
        confidence=default.confidence if confidence is None else confidence,
        replan_needed=bool(replan),
        retry=default.retry if retry is None else retry,
        body=trimmed(body),
        has_front_matter=True,
    )
