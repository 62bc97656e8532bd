"""Read a specialist's text: an optional front matter, then the result."""

import re
from collections.abc import Iterator, Sequence
from typing import cast

from pydantic import Field

from replan.plan.model import Value
from replan.replies.forms.front_matter import DELIMITER, KeyLine, match_key
from replan.replies.forms.json_text import as_text, decode
from replan.replies.forms.thoughts import without_thoughts
from replan.replies.forms.wrapping import (
    BLANK,
    few_lines,
    find_fence,
    first_fence,
    plain,
    skip_blank,
    trimmed,
    whole_fence,
    without_thinking,
)
from replan.replies.vocabulary.keys import BODY_KEYS, find_key, squeezed
from replan.replies.vocabulary.labels import flag_of, number_of, status_of
from replan.state.results import ExecutionStatus

SPECIALIST_KEYS = frozenset(("status", "confidence", "replan_needed", "retry"))

_MAX_LINES = 40
_NAMED = re.compile(r"[\"'`*]{0,3}(\w[\w -]{0,30})[\"'`*]{0,3}\s?:[ \t]*(.*)")
_BLOCK_SCALAR = re.compile(r"[|>][+-]?\d?")
# Names under which models say how their work went, whatever they report.
_ABOUT_THE_WORK = frozenset(
    ("cause", "details", "error", "explanation", "message", "note", "notes", "problem", "reason")
)


class SpecialistReading(Value):
    # How the work ended; success where nothing is said.
    status: ExecutionStatus = ExecutionStatus.SUCCESS
    confidence: float = Field(default=1.0, ge=0, le=1)
    replan_needed: bool = False  # asks the host to revise the plan
    retry: bool = True  # whether another attempt can help
    body: str = ""  # the result


def read_specialist(text: str) -> SpecialistReading:
    """Read a specialist's text, which is all body unless it certainly begins with a front matter.

    A report may begin with a line such as `status: on track` or with its own front matter. So
    no value may be wrong where a label is expected, and a block stays part of the body if there is
    anything in it in addition to the known keys. A text without any result is not a success.
    """
    source = without_thinking(text)
    reading = (
        next(filter(None, map(_read, _forms(source))), None)
        or _read_object(source)
        or _read_delimited(source, with_others=True)
    )
    body = trimmed(without_thoughts(trimmed(source)))
    if reading is None:
        status = ExecutionStatus.SUCCESS if body else ExecutionStatus.FAILED
        return SpecialistReading(status=status, body=body)
    return reading.replace(body=trimmed(without_thoughts(reading.body)))


def _forms(text: str) -> Iterator[str]:
    """Yield the text, and also what is in its fence or after its introduction."""
    yield text
    start = skip_blank(text)
    delimiter, fence = DELIMITER.search(text, start), find_fence(text)
    starts = sorted({at for at in (delimiter and delimiter.start(), fence) if at is not None})
    for at in starts[:1]:
        if few_lines(text[:at]):
            rest = text[at:]
            yield from [rest] if at > start else []
            if (whole := whole_fence(rest)) is not None and not whole.rest.strip(BLANK):
                yield whole.inner.strip("\n")
            if (first := first_fence(rest)) is not None and first.rest.strip(BLANK):
                inner = first.inner.strip("\n")
                yield (
                    inner + first.rest
                    if DELIMITER.match(inner)
                    else f"---\n{inner}\n---{first.rest}"
                )


def _read(text: str) -> SpecialistReading | None:
    reading = _read_delimited(text) or _read_bare(text)
    return reading if reading and reading.body else None


def _read_delimited(text: str, *, with_others: bool = False) -> SpecialistReading | None:
    opened = DELIMITER.match(text, skip_blank(text))
    closed = DELIMITER.search(text, opened.end() + 1) if opened else None
    if opened is None or closed is None:
        return None
    lines = text[opened.end() + 1 : closed.start()].split("\n", _MAX_LINES)
    written = [line for line in lines if line.strip(BLANK)]
    found = [match_key(line, SPECIALIST_KEYS) for line in written]
    if not written or not (with_others or all(found)):
        return None
    body = text[closed.end() :]
    reading = _reading([line for line in found if line], body)
    if reading is None or all(found):
        return reading
    others = [line for line, key in zip(written, found, strict=True) if key is None]
    remarks = _remarks(others, any_name=reading.status is not ExecutionStatus.SUCCESS)
    # Anything else beyond front matter is foreign text, such as the front matter of a document.
    return reading.replace(
        body=trimmed(f"{remarks}\n\n{trimmed(body)}") if remarks else trimmed(text)
    )


def _remarks(lines: Sequence[str], *, any_name: bool) -> str:
    """What a model says of its work under names of its own; empty if it may be anything else."""
    found: list[tuple[str, str]] = []
    for line in lines:
        named = _NAMED.fullmatch(line.rstrip(BLANK))
        if named is not None and (any_name or squeezed(named[1]) in _ABOUT_THE_WORK):
            found.append((named[1], "" if _BLOCK_SCALAR.fullmatch(named[2]) else named[2]))
        elif found and line[:1] in " \t":
            name, value = found[-1]
            found[-1] = (name, f"{value} {line.strip(BLANK)}".strip())
        else:
            return ""
    said = [(name, plain(value).strip("\"' ")) for name, value in found]
    if len(said) == 1:
        return said[0][1]
    return "\n".join(f"{name}: {value}" for name, value in said)


def _read_bare(text: str) -> SpecialistReading | None:
    found: list[KeyLine] = []
    at = skip_blank(text)
    while len(found) < _MAX_LINES and at < len(text):
        end = text.find("\n", at)
        line = match_key(text[at : end if end >= 0 else len(text)], SPECIALIST_KEYS)
        if line is None or not line.is_plain:
            break
        found.append(line)
        at = end + 1 if end >= 0 else len(text)
    rest = text[at:]
    # Without delimiters, a blank line or a second key has to show that these are not sentences.
    is_apart = len(found) > 1 or rest[:1] == "\n" or DELIMITER.match(rest) is not None
    words = [line.value.lower() for line in found if line.key == "status"]
    is_own = bool(set(words) & {str(status) for status in ExecutionStatus})
    if not words or not (is_own or is_apart):
        return None
    closed = DELIMITER.match(rest)
    return _reading(found, rest[closed.end() :] if closed else rest)


def _read_object(text: str) -> SpecialistReading | None:
    """Read a JSON object with a status and a result, and no unknown keys."""
    fenced = first_fence(text[skip_blank(text) :])
    source = (fenced.inner if fenced else text).strip()
    if not source.startswith("{"):
        return None
    value = decode(source, 0).value
    fields = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    found = {key: find_key(key, SPECIALIST_KEYS) for key in fields}
    bodies = [key for key in fields if found[key] is None]
    if len(bodies) != 1 or squeezed(bodies[0]) not in BODY_KEYS | {"result", "output", "text"}:
        return None
    lines = [
        KeyLine(key[0], as_text(fields[name]), is_plain=True) for name, key in found.items() if key
    ]
    reading = _reading(lines, as_text(fields[bodies[0]]))
    return reading if reading and "status" in {line.key for line in lines} else None


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
    )
