"""Extraction by rules: named values, answers, and values that fit only one slot."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

from pydantic import JsonValue

from replan.jobs.extraction.dates import dates_in
from replan.jobs.extraction.names import aliases, outermost, places
from replan.jobs.extraction.numbers import Span, numbers_in
from replan.jobs.extraction.port import Extracted, Wanted
from replan.jobs.extraction.small_words import SMALL, Marks, led, marks_in
from replan.jobs.job import COMMAND, CONFIRMATION, Asked
from replan.jobs.sayings import bare, is_question, means
from replan.jobs.spec.job_spec import Command
from replan.jobs.spec.slot import Slot
from replan.jobs.spec.slot_values import fields as as_fields, text as as_text

_IS = r"\s*(?:[:：=]|(?:is|are|should be|shall be)\b|改成|改为|换成|应该是|是|为)\s*"
_CHANGE = r"(?:change|set|make|switch|correct)\s+(?:the\s+|my\s+)?"
_LINE_END = re.compile(r"[\n;；]")
_SENTENCE_END = re.compile(r"[\n;；。\uff01]|[.!](?=\s|$)")
_AND = re.compile(r"(?<!\s)\s+(?:and|but)$")
_AROUND = " ,，、\t.。!\uff01"
_WORD = re.compile(r"\w")
_NOT = re.compile(
    r"(?:\b(?:not|except|instead of|rather than)(?: (?:on|in|at|the|a)){0,2} *|不是|不要|不想|别)$",
    re.IGNORECASE,
)
_FAR = 30
_LONGEST_SAID = 20_000
_FEW = 4
_MOST = 50  # places where a value of one slot may be


@dataclass(frozen=True)
class Reading:
    """The values that the rules found, and the text that they did not understand.

    Attributes:
        found: What was found.
        is_sure: Whether all of the message is understood, so that no model need be asked.
        guessed: The slots that were given a whole message, since they were asked for.
    """

    found: Extracted
    is_sure: bool
    guessed: frozenset[str] = frozenset()


class RuleExtractor:
    """Finds values without a model."""

    async def extract(self, wanted: Wanted) -> Extracted:
        """Look through the new messages of the user."""
        return read_by_rules(wanted).found


def read_by_rules(wanted: Wanted) -> Reading:
    """Search the new messages of the user: for yes and no, names, then the requested value."""
    said = wanted.said[:_LONGEST_SAID]
    asked = wanted.spec.slot(wanted.asked) if wanted.spec.knows(wanted.asked) else None
    if (whole := _whole(said, wanted, asked) or _opening(said, wanted)) is not None:
        return Reading(whole, is_sure=True)
    values, rest = _named(said, wanted)
    marks = _small_words(rest, wanted)
    behind, rest = _led(rest, marks, wanted)
    values = {**behind, **values}
    is_sure = bool(values) and not _WORD.search(rest)
    command = _command(rest, wanted)
    is_sure = is_sure or bare(rest) == bare(command) != ""
    # What is in a question may be about anything.
    if rest.strip() and not is_question(rest):
        values = _unnamed(rest, wanted, values, has_command=bool(command)) | values
    guessed = {*behind}
    if asked is not None and asked.name not in values and not command:
        # What another slot takes is not an answer where a value has a form.
        is_other = bool(values) and not _is_free(asked)
        answer = None if is_other else _answer(_bare_answer(rest, marks, asked), asked)
        if answer is not None:
            values[asked.name] = answer
            guessed.add(asked.name)
            is_sure = len(rest.split()) < _FEW or bool(asked.pattern or asked.choices)
    elif asked is not None and asked.name in values and len(rest.split()) < _FEW:
        is_sure = True
    found = Extracted(command=command, values=values)
    return Reading(found, is_sure, frozenset(guessed))


def _whole(said: str, wanted: Wanted, asked: Slot | None) -> Extracted | None:
    """The meaning of a message with a single intent: cancel, yes or no; else nothing."""
    if asked is not None and _loose(asked, said, wanted) is not None:
        return None
    if means(said, "cancel") or means(said, "nothing"):
        return Extracted(cancelled=means(said, "cancel"))
    if wanted.asked == CONFIRMATION and (means(said, "yes") or means(said, "no")):
        return Extracted(confirmed=means(said, "yes"))
    return None


def _command(said: str, wanted: Wanted) -> str:
    """The one command that a message names; a known one is left only by a message of its own."""
    found: list[tuple[str, Span]] = []
    for each in wanted.spec.commands:
        for word in _words_of(each):
            if bare(word) == bare(said):
                return "" if each.name == wanted.job.command else each.name
            spans = places(word, said) if not wanted.job.command else ()
            found += [(each.name, span) for span in spans]
    names = {name for name, _ in outermost(found)}
    return names.pop() if len(names) == 1 else ""


def _opening(said: str, wanted: Wanted) -> Extracted | None:
    """The values of a message that begins with a command and consists mostly of its values."""
    job = wanted.job
    for each in wanted.spec.commands if job.command else ():
        is_same = each.name == job.command
        after = job if is_same else job.replace(command=each.name, asked=Asked())
        inner = replace(wanted, job=after)
        for word in _words_of(each):
            start, end = next(places(word, said), (0, 0))
            # Without blanks, the name of a slot may begin like the word.
            if not end or said[:start].strip() or _is_named_at(start, said, wanted):
                continue
            values, left = _named(said[end:], inner)
            values = _unnamed(left, inner, values, has_command=True) | values
            if values and len(left.split()) < _FEW:
                return Extracted(command="" if is_same else each.name, values=values)
    return None


def _is_named_at(place: int, said: str, wanted: Wanted) -> bool:
    return any(start == place for _, start, _ in _marks(said, wanted))


def _words_of(command: Command) -> tuple[str, ...]:
    labels = [*cast("dict[str, str]", command.label).values()]
    return (command.name, command.name.replace("_", " "), *labels, *command.words)


def _named(said: str, wanted: Wanted) -> tuple[dict[str, JsonValue], str]:
    """The values that are written with a name, and the rest of the message."""
    if said.lstrip().startswith("{") and (fields := _object(said)) is not None:
        names = {alias: name for name in wanted.names for alias in aliases(wanted.spec.slot(name))}
        return {names.get(bare(key), key): each for key, each in fields.items()}, ""
    values: dict[str, JsonValue] = {}
    rest: list[str] = []
    at = 0
    marks = [*_marks(said, wanted)]
    for place, (name, start, end) in enumerate(marks):
        rest.append(said[at:start])
        until = marks[place + 1][1] if place + 1 < len(marks) else len(said)
        is_line = start == 0 or said[start - 1] == "\n"
        value, length = _piece(wanted.spec.slot(name), said[end:until], wanted, is_line=is_line)
        if value is not None:
            values[name] = value
        at = end + length
    rest.append(said[at:])
    return values, " ".join(part.strip() for part in rest if part.strip(" ,;\n\t，；、。."))


def _piece(slot: Slot, piece: str, wanted: Wanted, *, is_line: bool) -> tuple[JsonValue, int]:
    """The value at the beginning of a text, and how much of the text it is."""
    # A line that begins with the name is all value; in a sentence, the value ends with it.
    end = (_LINE_END if is_line or slot.type in ("list", "object") else _SENTENCE_END).search(piece)
    length = end.start() if end else len(piece)
    text = _AND.sub("", piece[:length].strip(_AROUND))
    found = _loose(slot, piece[:length], wanted) if slot.type in _FINDERS else None
    return (text or None) if found is None else found, length


def _marks(said: str, wanted: Wanted) -> Iterator[tuple[str, int, int]]:
    """Where a slot is named in front of its value: the slot, and the span of its name."""
    found: list[tuple[int, int, str]] = []
    for name in wanted.names:
        for alias in aliases(wanted.spec.slot(name)):
            word = re.escape(alias)
            left = r"(?<!\w)" if alias.isascii() else ""
            forms = rf"{_CHANGE}{word}\s+to\s+|{left}{word}{_IS}"
            found += [
                (each.start(), -each.end(), name)
                for each in re.finditer(forms, said, re.IGNORECASE)
            ]
    at = 0
    for start, end, name in sorted(found):
        if start >= at:
            yield name, start, -end
            at = -end


def _unnamed(
    said: str, wanted: Wanted, named: dict[str, JsonValue], *, has_command: bool
) -> dict[str, JsonValue]:
    """The requested slots, and values that fit only one open slot; all are open on confirmation."""
    job, spec = wanted.job, wanted.spec
    kept = () if wanted.asked == CONFIRMATION else job.collected_info
    held = {name for name in kept if name not in job.asked.names}
    open_ = [spec.slot(name) for name in wanted.names if name not in held and name not in named]
    values: dict[str, JsonValue] = {}
    asked = next((each for each in open_ if each.name == wanted.asked), None)
    if asked is not None and (value := _loose(asked, said, wanted)) is not None:
        values[asked.name] = value
    elif asked is not None and not has_command and _is_free(asked) and _answer(said, asked):
        # A free text may hold anything, and so may a list or fields.
        return values
    values |= _recognised(said, [each for each in open_ if _kind_of(each) == "told"], wanted)
    for kind in ("date", "number"):
        takers = [each for each in open_ if _kind_of(each) == kind and each.name not in values]
        is_asked = asked is not None and _kind_of(asked) == kind
        if len(takers) == 1 and not is_asked:
            value = _loose(takers[0], said, wanted)
            if value is not None:
                values[takers[0].name] = value
    return values


def _recognised(said: str, slots: Sequence[Slot], wanted: Wanted) -> dict[str, JsonValue]:
    """The values whose form shows their slot: each word fits only one slot."""
    taken = {each.name: _taken(each, said) for each in slots if _loose(each, said, wanted)}
    if any(len(spans) > _MOST for spans in taken.values()):
        return {}
    values: dict[str, JsonValue] = {}
    for slot in slots:
        own = taken.get(slot.name, ())
        others = [span for name, spans in taken.items() if name != slot.name for span in spans]
        is_shared = any(a < end and start < b for start, end in own for a, b in others)
        if own and (slot.name == wanted.asked or not is_shared):
            values[slot.name] = _loose(slot, said, wanted)
    return values


def _taken(slot: Slot, said: str) -> list[Span]:
    """Where the values are of a slot that has choices or a pattern."""
    if slot.choices:
        return [span for _, span in _choices_in(slot, said)]
    return [found.span() for found in re.finditer(_apart(slot.pattern or ""), said)]


def _is_free(slot: Slot) -> bool:
    return slot.type in ("text", "list", "object") and not slot.choices and not slot.pattern


def _kind_of(slot: Slot) -> str:
    if slot.choices or slot.pattern:
        return "told"
    return "number" if slot.type in ("number", "integer") else slot.type


def _loose(slot: Slot, said: str, wanted: Wanted) -> JsonValue:
    """The only value in a message that fits a slot; None without one, or with several."""
    if slot.choices:
        return _chosen(slot, said)
    if slot.type in _FINDERS:
        found = [*dict.fromkeys(_FINDERS[slot.type](said, wanted))]
        return found[0] if len(found) == 1 else None
    if slot.type == "boolean" and (means(said, "yes") or means(said, "no")):
        return means(said, "yes")
    if slot.pattern:
        found = {each[0] for each in re.finditer(_apart(slot.pattern), said)}
        return found.pop() if len(found) == 1 else None
    return None


def _apart(pattern: str) -> str:
    return rf"(?<![A-Za-z0-9_])(?:{pattern})(?![A-Za-z0-9_])"


def _numbers(said: str, wanted: Wanted) -> Iterator[JsonValue]:
    days = [span for _, span in dates_in(said, wanted.today)]
    for number, (start, end) in numbers_in(said):
        is_of_day = any(first < end and start < last for first, last in days)
        if not is_of_day and not _is_denied(said, start):
            yield number


def _days(said: str, wanted: Wanted) -> Iterator[JsonValue]:
    for day, (start, _) in dates_in(said, wanted.today):
        if not _is_denied(said, start):
            yield day.isoformat()


def _is_denied(said: str, place: int) -> bool:
    """Whether the user rejects the value at a place."""
    return _NOT.search(said[max(0, place - _FAR) : place]) is not None


_FINDERS: dict[str, Callable[[str, Wanted], Iterator[JsonValue]]] = {
    "date": _days,
    "number": _numbers,
    "integer": _numbers,
}


def _chosen(slot: Slot, said: str) -> JsonValue:
    found = [*dict.fromkeys(choice for choice, _ in _choices_in(slot, said))]
    if slot.type == "list":
        return [each for each in slot.choices if each in found] or None
    return found[0] if len(found) == 1 else None


def _choices_in(slot: Slot, said: str) -> list[tuple[str, Span]]:
    choices = cast("dict[str, tuple[str, ...]]", slot.choices)
    found = (
        (choice, span)
        for choice, words in choices.items()
        for word in (choice, *words)
        for span in places(word, said)
    )
    return [(choice, span) for choice, span in outermost(found) if not _is_denied(said, span[0])]


def _small_words(said: str, wanted: Wanted) -> Marks:
    """Where small words are by which slots of free text are called."""
    slots = [wanted.spec.slot(name) for name in wanted.names]
    words = {
        word: slot.name
        for slot in slots
        if slot.type == "text" and _is_free(slot)
        for word in aliases(slot)
        if word in SMALL
    }
    return marks_in(said, words)


def _led(said: str, marks: Marks, wanted: Wanted) -> tuple[dict[str, str], str]:
    """The names after small words, where the message has only a command before them."""
    names = [name for _, name in marks]
    before = bare(said[: marks[0][0][0]]) if marks else ""
    words = {bare(word) for each in wanted.spec.commands for word in _words_of(each)}
    is_about_them = wanted.asked in ("", COMMAND, *names) and before in ("", *words)
    is_open = all(name == wanted.asked or name not in wanted.job.collected_info for name in names)
    return led(said, marks, wanted.today) if is_about_them and is_open else ({}, said)


def _bare_answer(said: str, marks: Marks, asked: Slot) -> str:
    """An answer without the small word by which its slot is called; empty if it is about others."""
    names = [name for _, name in marks]
    if asked.name not in names and not (names and {*aliases(asked)} & SMALL):
        return said
    (start, end), first = marks[0]
    if said[:start].strip():
        return said
    return said[end:] if first == asked.name and len(marks) == 1 else ""


def _answer(said: str, slot: Slot) -> JsonValue:
    """Treat a whole message as the answer to a question, unless it is a question itself."""
    text = said.strip()
    if not text or is_question(text) or as_text(text) is None:
        return None
    if slot.type == "object":
        # A form of fields is all of the message.
        return text if as_fields(text) is not None else None
    if slot.type == "text" and not slot.choices and not slot.pattern:
        if means(text, "yes") or means(text, "no"):
            return None
        return text.strip("\"'“”")
    # It is not a value of the slot, and the user is told so.
    return text if slot.type == "list" or len(text.split()) < _FEW else None


def _object(text: str) -> dict[str, JsonValue] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, JsonValue]", found) if isinstance(found, dict) else None
