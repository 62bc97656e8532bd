"""The line of a step: its number, description, specialists and options."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from replan.errors import Mistake
from replan.plan.encoding import NAME, decode, encode, encode_name, encode_where
from replan.plan.model import PlanStep
from replan.plan.option_table import (
    ASSIGNED,
    KNOWN,
    Options,
    Phrase,
    conflict,
    joined,
    read_group,
    slip_of,
    write_options,
)
from replan.texts.bounds import STEP_ATTRIBUTES, STEP_LINE


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
    options: Options
    complaints: tuple[UnplacedMistake, ...] = ()


@dataclass(slots=True)
class _Reading:
    """The part of the line that is still to be read from its end, and what was found there."""

    rest: str
    options: Options = field(default_factory=dict[str, object])
    complaints: list[UnplacedMistake] = field(default_factory=list[UnplacedMistake])

    def add(self, found: Options) -> None:
        """Add options that are further left than those already found."""
        if name := conflict(found, self.options):
            self.complaints.append(repeated(name, self.rest))
        self.options = joined(found, self.options)


def read_title(text: str, *, numbered: str | None = None) -> Title:
    """Read the line of a step, after list marker and mark."""
    number, text = _read_number(text.strip())
    text = _unbold(text)
    # Names and options are at the end; what is before them is only kept.
    start = max(0, len(text) - STEP_LINE)
    reading = _Reading(text[start:])
    if start:
        reading.complaints.append(_too_long(len(text)))
    for _ in range(STEP_ATTRIBUTES):
        if not _read_from_end(reading):
            break
    else:
        reading.complaints.extend([_TOO_MANY] if _read_from_end(reading) else [])
    description = decode(_unbold((text[:start] + reading.rest).strip()))
    return Title(number or numbered, description, reading.options, tuple(reading.complaints))


def own_number(text: str) -> str | None:
    """Return the number that the text of a list item begins with, as in "2. Compare"."""
    return _read_number(text.strip())[0]


def write_title(step: PlanStep, *, number: str) -> str:
    """Write the line of a step, after list marker and mark, so that reading it gives the same."""
    tail = "".join(f" @{encode_name(name)}" for name in step.specialists)
    options = write_options(step)
    tail += f" ({options})" if options else ""
    line = f"{number}{encode(step.description)}{tail}"
    for guard in _GUARDS:
        if _says(line, step, number):
            break
        line = f"{number}{encode_where(step.description, guard)}{tail}"
    return line


def repeated(name: str, about: str) -> UnplacedMistake:
    """Report an option that is given twice, with different values."""
    reason = f"This step says '{name}' twice, with different values."
    return UnplacedMistake("repeated_option", about, reason, "Say it once.")


def complaint_about(phrase: Phrase) -> UnplacedMistake:
    """Report a piece of a parenthesis, or a key line, that is no option or has no usable value."""
    if phrase.option is None:
        near = slip_of(phrase.text)
        reason = f"'{phrase.text}' is not an option of a step."
        fix = f"Did you mean '{near}'? " if near else ""
        return UnplacedMistake("unknown_option", phrase.text, reason, f"{fix}Known are: {KNOWN}.")
    reason = f"'{phrase.text}' has no value that can be used."
    fix = f"Write it like this: {phrase.option.example}; or in other words if it is no option."
    return UnplacedMistake("bad_option", phrase.text, reason, fix)


def _says(line: str, step: PlanStep, number: str) -> bool:
    title = read_title(line)
    return (
        title.number == (number.rstrip(". ") or None)
        and title.description == step.description
        and title.options.get(ASSIGNED.field, ()) == step.specialists
    )


def _read_number(text: str) -> tuple[str | None, str]:
    match = _NUMBER.match(text)
    if match is None:
        return None, text
    rest = text[match.end() :].lstrip()
    if match["bold"] and not match["early"] and not match["late"]:
        rest = rest.replace(match["bold"], "", 1)
    return match["step"] or match["plain"], rest


def _unbold(text: str) -> str:
    inner = text.removeprefix("**").removesuffix("**")
    return inner.strip() if f"**{inner}**" == text and inner and "**" not in inner else text


def _read_from_end(reading: _Reading) -> bool:
    """Take one name or parenthesis off the end of the line; return whether there was one."""
    rest = reading.rest.rstrip()
    if rest[-1:] in ".。" and rest[-2:-1] in (")", "）"):
        rest = rest[:-1]
    return _read_group(reading, rest) if rest[-1:] in (")", "）") else _read_mention(reading, rest)


def _read_mention(reading: _Reading, rest: str) -> bool:
    at = rest.rfind("@")
    match = _MENTION.fullmatch(rest, max(at, 0))
    if match is None or (at > 0 and _IN_AN_ADDRESS.match(rest[at - 1])):
        return False
    before = rest[:at].rstrip()
    between = _BETWEEN_MENTIONS.search(before, max(0, before.rfind("@")))
    reading.rest = before[: between.start(1)] if between else before
    reading.add({ASSIGNED.field: (decode(match[1]),)})
    return True


def _read_group(reading: _Reading, rest: str) -> bool:
    start = _opening_bracket(rest)
    # A parenthesis behind `]` is the address of a link.
    if start is None or rest[start - 1 : start] == "]":
        return False
    phrases = read_group(rest[start + 1 : -1])
    before = rest[:start].rstrip()
    if not (_means_options(phrases) or _TRAILING_MENTION.search(before)):
        return False
    reading.rest = before
    reading.complaints.extend(complaint_about(each) for each in phrases if not each.is_read)
    for phrase in reversed(phrases):
        if phrase.option is not None and phrase.is_read:
            reading.add({phrase.option.field: phrase.value})
    return True


def _means_options(phrases: list[Phrase]) -> bool:
    """Whether a parenthesis is no part of the description: it has or begins with an option.

    So does one whose first word is a slip of an option's: it must not be lost in silence.
    """
    first = phrases[0] if phrases else Phrase("")
    is_meant = first.option is not None or bool(slip_of(first.text))
    return is_meant or any(phrase.is_read for phrase in phrases)


def _opening_bracket(text: str) -> int | None:
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] in ")）") - (text[at] in "(（")
        if depth == 0:
            return at
    return None


def _too_long(length: int) -> UnplacedMistake:
    reason = f"The line of this step has {length:,} characters; at most {STEP_LINE:,} are read."
    return UnplacedMistake("too_large", "", reason, "Write the details on indented lines below it.")


_TOO_MANY = UnplacedMistake(
    "too_large",
    "",
    f"This step has more than {STEP_ATTRIBUTES} names and options.",
    "Name fewer specialists, and write all options into one pair of brackets.",
)
# Which characters of a description are written as references where it would be misread without.
_GUARDS: tuple[Callable[[int, str], bool], ...] = (
    lambda at, _: at == 0,
    lambda at, mark: at == 0 or not (mark.isalnum() or mark == " "),
    lambda _at, _mark: True,
)
_NUMBER = re.compile(
    r"(?P<bold>\*\*)?(?:(?:step|步骤|第)\s*+#?(?P<step>\d++)(?:\s*+步)?|(?P<plain>\d++))"
    r"(?P<early>\*\*)?(?:\s*+[.)、．:：](?!\d)|\s++[-–—](?=\s)|(?(step)\s|(?!)))(?P<late>\*\*)?",
    re.IGNORECASE,
)
_MENTION = re.compile(rf"@({NAME})[.。]?")
_TRAILING_MENTION = re.compile(rf"(?:^|[^A-Za-z0-9.+\-@])@{NAME}$")
_BETWEEN_MENTIONS = re.compile(rf"@{NAME}(\s*(?:[,，、&]|和|与|\sand))$")
_IN_AN_ADDRESS = re.compile(r"[A-Za-z0-9.+\-@]")
