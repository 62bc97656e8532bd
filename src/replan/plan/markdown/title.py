"""The line of a step: its number, description, specialists and attributes."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from replan.errors import Mistake
from replan.plan.markdown import words
from replan.plan.markdown.attributes import KNOWN, Attributes, write_attributes
from replan.plan.markdown.encoding import decode, encode, encode_name, encode_where
from replan.plan.markdown.phrases import Phrase, read_phrases, read_trailing
from replan.plan.model import PlanStep
from replan.texts.bounds import STEP_ATTRIBUTES, STEP_LINE

_LONGEST_KEPT = 500


@dataclass(frozen=True, slots=True)
class UnplacedMistake:
    """A mistake in one line, named by the text that it is about."""

    code: str
    about: str
    reason: str
    fix: str

    def at(self, line: int, column: int) -> Mistake:
        """Return it with its position in the document, counted from 1."""
        return Mistake(line=line, column=column, code=self.code, reason=self.reason, fix=self.fix)


@dataclass(frozen=True, slots=True)
class Title:
    """The content of the line of a step, after its mark."""

    number: str | None
    description: str
    attributes: Attributes
    complaints: tuple[UnplacedMistake, ...] = ()


@dataclass(slots=True)
class _Reading:
    """The part of the line that is still to be read from its end, and what was found there."""

    rest: str
    attributes: Attributes = field(default_factory=Attributes)
    complaints: list[UnplacedMistake] = field(default_factory=list[UnplacedMistake])

    def add(self, found: Attributes) -> None:
        """Add attributes that are further left than those already found."""
        name = found.conflict(self.attributes)
        if name is not None:
            self.complaints.append(repeated(name, self.rest))
        self.attributes = found | self.attributes


def read_title(text: str, *, numbered: str | None = None) -> Title:
    """Read the line of a step, after list marker and mark."""
    read = _read_title if len(text) > _LONGEST_KEPT else _kept_title
    return read(text.strip(), numbered)


def _read_title(text: str, numbered: str | None) -> Title:
    number, text = _read_number(text, numbered)
    text = _unbold(text)
    # Attributes are at the end; what is before them is only kept.
    start = max(0, len(text) - STEP_LINE)
    reading = _Reading(text[start:])
    _read_attributes(reading)
    if start:
        reading.complaints.append(_too_long(len(text)))
    description = decode(_unbold((text[:start] + reading.rest).strip()))
    return Title(number, description, reading.attributes, tuple(reading.complaints))


def _read_attributes(reading: _Reading) -> None:
    for _ in range(STEP_ATTRIBUTES):
        if not _read_from_end(reading):
            return
        reading.rest = reading.rest.rstrip()
    if _read_from_end(reading):
        reading.complaints.append(_TOO_MANY)


# A change of one step leaves the others as they were, and its own line changes by its mark.
_kept_title = lru_cache(maxsize=4_096)(_read_title)


def own_number(text: str) -> str | None:
    """Return the number that the text of a list item begins with, as in "2. Compare"."""
    return _read_number(text.strip(), None)[0]


def names_a_step(text: str) -> bool:
    """Whether a line calls itself a step: "Step 2: Compare"."""
    match = _NUMBER.match(text.strip())
    return match is not None and match["step"] is not None


def write_title(step: PlanStep, *, number: str) -> str:
    """Write the line of a step, after list marker and mark, so that reading it gives the same."""
    tail = "".join(f" @{encode_name(name)}" for name in step.specialists)
    attributes = write_attributes(step)
    if step.writes and _attributes_in(attributes).writes != step.writes:
        attributes = write_attributes(step, guarded=True)
    if attributes:
        tail += f" ({attributes})"
    wanted = step.description
    for description in _ways_to_write(wanted):
        line = f"{number}{description}{tail}"
        title = read_title(line, numbered=None if number else "1")
        if title.description == wanted and (title.attributes.specialists or ()) == step.specialists:
            return line
    return f"{number}{encode_where(wanted, lambda _at, _mark: True)}{tail}"


def repeated(name: str, about: str) -> UnplacedMistake:
    """Report an attribute that is given twice, with different values."""
    reason = f"This step says '{name}' twice, with different values."
    return UnplacedMistake("repeated_attribute", about, reason, "Say it once.")


def _attributes_in(attributes: str) -> Attributes:
    found = Attributes()
    for phrase in read_phrases(attributes):
        found |= phrase.attributes or found
    return found


def _ways_to_write(description: str) -> Iterator[str]:
    last = len(description) - 1
    guards: tuple[Callable[[int, str], bool], ...] = (
        lambda at, _: at == 0,
        lambda _, mark: mark in "@()（）[]",
        lambda at, mark: at in (0, last) or mark in "@()（）[]",
        lambda at, mark: at in (0, last) or not (mark.isalnum() or mark == " "),
    )
    yield encode(description)
    for guard in guards:
        yield encode_where(description, guard)


def _read_number(text: str, numbered: str | None) -> tuple[str | None, str]:
    match = _NUMBER.match(text)
    if match is None or not _is_number(match, text):
        return numbered, text if numbered is None else _without_echo(text, numbered)
    number: str = match["step"] or match["plain"]
    return number, _without_echo(_after_number(match, text), number)


def _is_number(match: re.Match[str], text: str) -> bool:
    """Whether a number is a step's, and not the beginning of a sentence ("3.5 million")."""
    if match["step"]:
        return True
    after = text[match.end() : match.end() + 1]
    spaced = match[0][-1].isspace() or not (after.isascii() and after.isalnum())
    return spaced and (match["open"] is not None or match["early"] is None)


def _after_number(match: re.Match[str], text: str) -> str:
    """Return the text after a number, without the other half of a bold mark that it opened."""
    rest = text[match.end() :]
    closed = match["early"] or match["late"]
    return rest if closed or not match["open"] else rest.replace(match["open"], "", 1)


def _without_echo(text: str, number: str) -> str:
    """Drop "Step 2:" after the 2 of the list; models often write both."""
    match = _NUMBER.match(text)
    return _after_number(match, text) if match is not None and match["step"] == number else text


def _unbold(text: str) -> str:
    for mark in ("**", "__"):
        inner = text[2:-2]
        if len(text) > 4 and text.startswith(mark) and text.endswith(mark) and mark not in inner:  # noqa: PLR2004 - two marks
            return inner.strip()
    return text


def _read_from_end(reading: _Reading) -> bool:
    """Take one attribute off the end of the line; return whether there was one."""
    rest = reading.rest.rstrip()
    if rest[-1:] in ".。" and rest[-2:-1] in (")", "）", "]"):
        rest = rest[:-1]
    if rest[-1:] in (")", "）", "]"):
        return _read_group(reading, rest)
    return _read_mentions(reading, rest) or _read_words(reading, rest)


def _read_mentions(reading: _Reading, rest: str) -> bool:
    at = rest.rfind("@")
    while at > 0 and rest[at - 1] in "`*_":
        at -= 1
    found = _MENTION.fullmatch(rest, max(at, 0))
    if found is None or (at > 0 and _IN_AN_ADDRESS.match(rest[at - 1])):
        return False
    before = _without_connector(rest[:at])
    joined = _AND_MENTION.search(before, before.rfind("@")) if "@" in before else None
    reading.rest = before[: joined.start(1)] + joined[1] if joined else before
    reading.add(Attributes(specialists=(decode(found["name"]),)))
    return True


def _read_words(reading: _Reading, rest: str) -> bool:
    found = read_trailing(rest)
    if found is None:
        return False
    reading.rest = _without_connector(rest[: found[0]])
    reading.add(found[1])
    return True


def _read_group(reading: _Reading, rest: str) -> bool:
    start = _opening_bracket(rest)
    if start is None:
        return False
    content = rest[start + 1 : -1]
    phrases = list(read_phrases(content))
    if rest[start] == "[" and not content.lstrip().startswith("@"):
        return False
    # A parenthesis is part of the description, except behind a specialist's name: there it is
    # meant as attributes, and one that is misspelt must not be lost in silence.
    is_text = _TRAILING_MENTION.search(rest[:start]) is None
    if is_text and all(phrase.kind == "unknown" for phrase in phrases):
        return False
    reading.rest = _without_connector(rest[:start]) if rest[start] == "[" else rest[:start]
    reading.complaints.extend(_complaints(phrases))
    for phrase in reversed(phrases):
        if phrase.attributes is not None:
            reading.add(phrase.attributes)
    return True


def _without_connector(text: str) -> str:
    """Return the text before an attribute, without the dash or comma that led to it."""
    text = text.rstrip()
    found = _CONNECTOR.search(text, max(0, len(text) - 2))
    return text[: found.start()].rstrip() if found else text


def _opening_bracket(text: str) -> int | None:
    pairs = "[]" if text[-1] == "]" else "(（)）"
    half = len(pairs) // 2
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        place = pairs.find(text[at])
        depth += 0 if place < 0 else 1 if place >= half else -1
        if depth == 0:
            return at
    return None


def _complaints(phrases: list[Phrase]) -> Iterator[UnplacedMistake]:
    for phrase in phrases:
        if phrase.kind == "unknown":
            reason = f"'{phrase.text}' is not an attribute of a step."
            yield UnplacedMistake("unknown_attribute", phrase.text, reason, f"Known are: {KNOWN}.")
        elif phrase.kind == "bad_number":
            yield bad_number(phrase.text)


def bad_number(text: str) -> UnplacedMistake:
    """Report a value that is not a number, or not a usable one."""
    reason = f"'{text}' has no number that can be used."
    fix = "Write it like this: after 1, 2; priority 2; retries 1; timeout 30s."
    return UnplacedMistake("bad_number", text, reason, fix)


def _too_long(length: int) -> UnplacedMistake:
    reason = f"The line of this step has {length:,} characters; at most {STEP_LINE:,} are read."
    return UnplacedMistake("too_large", "", reason, "Write the details on indented lines below it.")


_TOO_MANY = UnplacedMistake(
    "too_large",
    "",
    f"This step has more than {STEP_ATTRIBUTES} names and attributes.",
    "Name fewer specialists, and write all other attributes into one pair of brackets.",
)
_NUMBER = re.compile(
    rf"(?P<open>\*\*|__)?\s*+(?:{words.STEP}\s*+#?(?P<step>\d++)(?:\s*+步)?|(?P<plain>\d++))"
    r"(?:(?P<early>\*\*|__)\s*+[:：.)、．]?|\s*+[:：.)、．]\s*+(?(open)(?P<late>\*\*|__)?)[:：]?"
    r"|(?<!^)\s++[—–-](?=\s))\s*+",
    re.IGNORECASE,
)
_MENTION = re.compile(rf"[`*_]*+@(?P<name>{words.NAME})[`*]*+[.,;。]?\s*+")
_TRAILING_MENTION = re.compile(rf"(?:^|[^A-Za-z0-9.+\-@])@{words.NAME}[`*]*+\s*+$")
_AND_MENTION = re.compile(rf"(@{words.NAME}[`*]*+)\s++{words.BETWEEN_NAMES}$", re.IGNORECASE)
_IN_AN_ADDRESS = re.compile(r"[A-Za-z0-9.+\-@]")
# A semicolon after a digit may end a character reference.
_CONNECTOR = re.compile(r"(?:[—–→,，、；:：|&+]|(?<![0-9]);|->|=>|(?<=\s)-)\Z")
