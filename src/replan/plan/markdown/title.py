"""The line of a step: its number, description, specialists and options."""

import re
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from pydantic import JsonValue

from replan.base.errors import Mistake
from replan.base.texts.bounds import STEP_ATTRIBUTES, STEP_LINE
from replan.plan.encoding import NAME, decode, encode_name, encode_to_fit
from replan.plan.model import PlanStep
from replan.plan.option_table import (
    ASSIGNED,
    KNOWN,
    Phrase,
    read_group,
    slip_of,
    write_options,
)


@dataclass(frozen=True, slots=True)
class UnplacedMistake:
    """A mistake in a line of a step, named by the text that it is about."""

    code: str
    about: str
    reason: str
    fix: str
    line: int = 0  # counted from the first line of the step

    def placed(self, line: int, column: int) -> Mistake:
        """Return it with its position in the document, counted from 1."""
        return Mistake(line=line, column=column, code=self.code, reason=self.reason, fix=self.fix)


@dataclass(slots=True)
class Said:
    """What the lines of a step say; places are counted from its first line."""

    head: int = 1  # how many lines are the step's own line; more than one if it was broken
    number: str | None = None
    description: str = ""
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    brief: str = ""
    parameters: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    result: str = ""
    feedback: str = ""
    key_lines: list[int] = field(default_factory=list[int])  # such as `- depends on: 1`
    quoted: set[int] = field(default_factory=set[int])  # the lines of the block quotes
    complaints: list[UnplacedMistake] = field(default_factory=list[UnplacedMistake])

    def complain(self, at: int, code: str, about: str, reason: str, fix: str) -> None:
        self.complaints.append(UnplacedMistake(code, about, reason, fix, at))

    def take(self, phrase: Phrase, at: int) -> bool:
        """Note an option: lists grow, of two other values the first one counts.

        What is no option, or has no value that can be used, is a mistake.
        """
        option, text = phrase.option, phrase.text
        if option is None:
            near = slip_of(text)
            fix = (f"Did you mean '{near}'? " if near else "") + f"Known are: {KNOWN}."
            self.complain(at, "unknown_option", text, f"'{text}' is not an option of a step.", fix)
        elif not phrase.is_read:
            reason = f"'{text}' has no value that can be used."
            fix = f"Write it like this: {option.example}; or in other words if it is no option."
            self.complain(at, "bad_option", text, reason, fix)
        elif option.kind.is_list:
            known = self.options.get(option.field, ())
            self.options[option.field] = tuple(dict.fromkeys((*known, *phrase.value)))
        elif self.options.setdefault(option.field, phrase.value) != phrase.value:
            reason = f"This step says '{option.word}' twice, with different values."
            self.complain(at, "repeated_option", text, reason, "Say it once.")
        return phrase.is_read


def read_title(text: str) -> Said:
    """Read the line of a step, after list marker and mark."""
    said = Said()
    said.number, text = _read_number(text.strip())
    text = _unbold(text)
    # Names and options are at the end; what is before them is only kept.
    start = max(0, len(text) - STEP_LINE)
    rest = text[start:]
    if start:
        reason = f"The line of this step has {len(text):,} characters; "
        reason += f"at most {STEP_LINE:,} are read."
        fix = "Write the details on indented lines below it."
        said.complain(0, "too_large", "", reason, fix)
    groups: list[list[Phrase]] = []
    while (found := _last_group(rest)) and len(groups) < STEP_ATTRIBUTES:
        rest, phrases = found
        groups.append(phrases)
    if found:
        reason = f"This step has more than {STEP_ATTRIBUTES} names and options."
        fix = "Name fewer specialists, and write all options into one pair of brackets."
        said.complain(0, "too_large", "", reason, fix)
    for phrase in chain.from_iterable(reversed(groups)):
        said.take(phrase, 0)
    said.description = decode(_unbold((text[:start] + rest).strip()))
    return said


def own_number(text: str) -> str | None:
    """Return the number that the text of a list item begins with, as in "2. Compare"."""
    return _read_number(text.strip())[0]


def write_title(step: PlanStep, *, number: str) -> str:
    """Write the line of a step, after list marker and mark, so that reading it gives the same."""
    tail = "".join(f" @{encode_name(name)}" for name in step.specialists)
    options = write_options(step)
    tail += f" ({options})" if options else ""
    if _IS_PLAIN(step.description):
        return f"{number}{step.description}{tail}"

    def says(description: str) -> bool:
        said = read_title(f"{number}{description}{tail}")
        return (
            said.number == (number.rstrip(". ") or None)
            and said.description == step.description
            and said.options.get(ASSIGNED.field, ()) == step.specialists
        )

    return f"{number}{encode_to_fit(step.description, says)}{tail}"


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


def _last_group(text: str) -> tuple[str, list[Phrase]] | None:
    """Take one name or parenthesis off the end of a line; None if there is none."""
    rest = text.rstrip()
    if rest[-1:] in ".。" and rest[-2:-1] in (")", "）"):
        rest = rest[:-1]
    return _in_brackets(rest) if rest[-1:] in (")", "）") else _mention(rest)


def _mention(rest: str) -> tuple[str, list[Phrase]] | None:
    at = rest.rfind("@")
    match = _MENTION.fullmatch(rest, max(at, 0))
    if match is None or (at > 0 and _IN_AN_ADDRESS.match(rest[at - 1])):
        return None
    before = rest[:at].rstrip()
    between = _BETWEEN_MENTIONS.search(before, max(0, before.rfind("@")))
    name = Phrase(match[0], ASSIGNED, (decode(match[1]),))
    return before[: between.start(1)] if between else before, [name]


def _in_brackets(rest: str) -> tuple[str, list[Phrase]] | None:
    start = _opening_bracket(rest)
    # A parenthesis behind `]` is the address of a link.
    if start is None or rest[start - 1 : start] == "]":
        return None
    phrases = read_group(rest[start + 1 : -1])
    before = rest[:start].rstrip()
    return (before, phrases) if _means_options(phrases) or _ends_in_name(before) else None


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


# Nothing in such a description can be misread: it begins with no number, and has no marks.
_IS_PLAIN = re.compile(r"(?!(?i:step))[A-Za-z][A-Za-z0-9 ,']*[A-Za-z0-9]").fullmatch
_NUMBER = re.compile(
    r"(?P<bold>\*\*)?(?:(?:step|步骤|第)\s*+#?(?P<step>\d++)(?:\s*+步)?|(?P<plain>\d++))"
    r"(?P<early>\*\*)?(?:\s*+[.)、．:：](?!\d)|\s++[-–—](?=\s)|(?(step)\s|(?!)))(?P<late>\*\*)?",
    re.IGNORECASE,
)
_MENTION = re.compile(rf"@({NAME})[.。]?")
_ends_in_name = re.compile(rf"(?:^|[^A-Za-z0-9.+\-@])@{NAME}$").search
_BETWEEN_MENTIONS = re.compile(rf"@{NAME}(\s*(?:[,，、&]|和|与|\sand))$")
_IN_AN_ADDRESS = re.compile(r"[A-Za-z0-9.+\-@]")
