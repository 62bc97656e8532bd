"""Extraction by rules: named values, answers, and values that fit only one slot."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

from pydantic import JsonValue

from replan.jobs.extraction.dates import dates_in
from replan.jobs.extraction.names import (
    SMALL,
    Marks,
    aliases,
    names_after,
    outermost,
    places,
)
from replan.jobs.extraction.numbers import Span, numbers_in
from replan.jobs.extraction.port import Extracted, Wanted
from replan.jobs.job import COMMAND, CONFIRMATION, Asked
from replan.jobs.sayings import bare, is_question, means
from replan.jobs.spec.slot import Slot
from replan.jobs.spec.slot_values import to_object, to_text

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
_REACH = 30
_LONGEST_READ = 20_000
_FEW = 4
_MOST = 50  # places where a value of one slot may be


@dataclass(frozen=True)
class Reading:
    """The values that the rules found, and the text that they did not understand."""

    found: Extracted
    is_sure: bool  # whether all of the message is understood, so that no model need be asked
    # The slots that were given a whole message, since they were asked for.
    guessed: frozenset[str] = frozenset()


class RuleExtractor:
    """Finds values without a model."""

    async def extract(self, wanted: Wanted) -> Extracted:
        """Look through the new messages of the user."""
        return read_by_rules(wanted).found


def read_by_rules(wanted: Wanted) -> Reading:
    """Search the new messages of the user: for yes and no, names, then the requested value."""
    message = wanted.said[:_LONGEST_READ]
    asked = wanted.spec.slot(wanted.asked) if wanted.spec.knows(wanted.asked) else None
    whole = _single_meaning(message, wanted, asked) or _after_command(message, wanted)
    if whole is not None:
        return Reading(whole, is_sure=True)
    values, rest = _named_values(message, wanted)
    marks = _small_word_marks(rest, wanted)
    behind, rest = _after_small_words(rest, marks, wanted)
    values = {**behind, **values}
    is_sure = bool(values) and not _WORD.search(rest)
    command = _command(rest, wanted)
    is_sure = is_sure or bare(rest) == bare(command) != ""
    # What is in a question may be about anything.
    if rest.strip() and not is_question(rest):
        values = _unnamed_values(rest, wanted, values, has_command=bool(command)) | values
    guessed = {*behind}
    if asked is not None and asked.name not in values and not command:
        # What another slot takes is not an answer where a value has a form.
        is_other = bool(values) and not _is_free(asked)
        answer = None if is_other else _as_answer(_bare_answer(rest, marks, asked), asked)
        if answer is not None:
            values[asked.name] = answer
            guessed.add(asked.name)
            is_sure = len(rest.split()) < _FEW or bool(asked.pattern or asked.choices)
    elif asked is not None and asked.name in values and len(rest.split()) < _FEW:
        is_sure = True
    found = Extracted(command=command, values=values)
    return Reading(found, is_sure, frozenset(guessed))


def _single_meaning(text: str, wanted: Wanted, asked: Slot | None) -> Extracted | None:
    """The meaning of a message with a single intent: cancel, yes or no; else nothing."""
    if asked is not None and _only_value(asked, text, wanted) is not None:
        return None
    if means(text, "cancel") or means(text, "nothing"):
        return Extracted(cancelled=means(text, "cancel"))
    if wanted.asked == CONFIRMATION and (means(text, "yes") or means(text, "no")):
        return Extracted(confirmed=means(text, "yes"))
    return None


def _command(text: str, wanted: Wanted) -> str:
    """The one command that a message names; a known one is left only by a message of its own."""
    found: list[tuple[str, Span]] = []
    for each in wanted.spec.commands:
        for word in aliases(each):
            if word == bare(text):
                return "" if each.name == wanted.job.command else each.name
            spans = places(word, text) if not wanted.job.command else ()
            found += [(each.name, span) for span in spans]
    names = {name for name, _ in outermost(found)}
    return names.pop() if len(names) == 1 else ""


def _after_command(text: str, wanted: Wanted) -> Extracted | None:
    """The values of a message that begins with a command and consists mostly of its values."""
    job = wanted.job
    for each in wanted.spec.commands if job.command else ():
        is_same = each.name == job.command
        after = job if is_same else job.replace(command=each.name, asked=Asked())
        inner = replace(wanted, job=after)
        for word in aliases(each):
            start, end = next(places(word, text), (0, 0))
            if not end or text[:start].strip():
                continue
            # Without blanks, the name of a slot may begin like the word.
            if start in [at for _, at, _ in _name_marks(text, wanted)]:
                continue
            values, left = _named_values(text[end:], inner)
            values = _unnamed_values(left, inner, values, has_command=True) | values
            if values and len(left.split()) < _FEW:
                return Extracted(command="" if is_same else each.name, values=values)
    return None


def _named_values(text: str, wanted: Wanted) -> tuple[dict[str, JsonValue], str]:
    """The values that are written with a name, and the rest of the message."""
    if text.lstrip().startswith("{") and isinstance(fields := to_object(text), dict):
        names = {alias: name for name in wanted.names for alias in aliases(wanted.spec.slot(name))}
        return {names.get(bare(key), key): each for key, each in fields.items()}, ""
    values: dict[str, JsonValue] = {}
    rest: list[str] = []
    at = 0
    marks = [*_name_marks(text, wanted)]
    edges = [*(start for _, start, _ in marks[1:]), len(text)]
    for (name, start, end), edge in zip(marks, edges, strict=False):
        rest.append(text[at:start])
        is_line = start == 0 or text[start - 1] == "\n"
        slot, piece = wanted.spec.slot(name), text[end:edge]
        value, length = _value_at_start(slot, piece, wanted, is_line=is_line)
        if value is not None:
            values[name] = value
        at = end + length
    rest.append(text[at:])
    return values, " ".join(part.strip() for part in rest if part.strip(" ,;\n\t，；、。."))


def _value_at_start(
    slot: Slot, piece: str, wanted: Wanted, *, is_line: bool
) -> tuple[JsonValue, int]:
    """The value at the beginning of a text, and how much of the text it is."""
    # A line that begins with the name is all value; in a sentence, the value ends with it.
    end = (_LINE_END if is_line or slot.type in ("list", "object") else _SENTENCE_END).search(piece)
    length = end.start() if end else len(piece)
    text = _AND.sub("", piece[:length].strip(_AROUND))
    found = _only_value(slot, piece[:length], wanted) if slot.type in _FINDERS else None
    return (text or None) if found is None else found, length


def _name_marks(text: str, wanted: Wanted) -> Iterator[tuple[str, int, int]]:
    """Where a slot is named in front of its value: the slot, and the span of its name."""
    found: list[tuple[int, int, str]] = []
    for name in wanted.names:
        for alias in aliases(wanted.spec.slot(name)):
            word = re.escape(alias)
            left = r"(?<!\w)" if alias.isascii() else ""
            forms = rf"{_CHANGE}{word}\s+to\s+|{left}{word}{_IS}"
            found += [
                (each.start(), -each.end(), name)
                for each in re.finditer(forms, text, re.IGNORECASE)
            ]
    at = 0
    for start, end, name in sorted(found):
        if start >= at:
            yield name, start, -end
            at = -end


def _unnamed_values(
    text: str, wanted: Wanted, named: dict[str, JsonValue], *, has_command: bool
) -> dict[str, JsonValue]:
    """The requested slots, and values that fit only one open slot; all are open on confirmation."""
    job, spec = wanted.job, wanted.spec
    kept = () if wanted.asked == CONFIRMATION else job.collected_info
    held = {name for name in kept if name not in job.asked.names}
    open_ = [spec.slot(name) for name in wanted.names if name not in held and name not in named]
    values: dict[str, JsonValue] = {}
    asked = next((each for each in open_ if each.name == wanted.asked), None)
    if asked is not None and (value := _only_value(asked, text, wanted)) is not None:
        values[asked.name] = value
    elif asked is not None and not has_command and _is_free(asked) and _as_answer(text, asked):
        # A free text may hold anything, and so may a list or fields.
        return values
    values |= _recognised(text, [each for each in open_ if _kind_of(each) == "form"], wanted)
    for kind in ("date", "number"):
        takers = [each for each in open_ if _kind_of(each) == kind and each.name not in values]
        is_asked = asked is not None and _kind_of(asked) == kind
        if len(takers) == 1 and not is_asked:
            value = _only_value(takers[0], text, wanted)
            if value is not None:
                values[takers[0].name] = value
    return values


def _recognised(text: str, slots: Sequence[Slot], wanted: Wanted) -> dict[str, JsonValue]:
    """The values whose form shows their slot: each word fits only one slot."""
    taken = {each.name: _spans_in(each, text) for each in slots if _only_value(each, text, wanted)}
    if any(len(spans) > _MOST for spans in taken.values()):
        return {}
    values: dict[str, JsonValue] = {}
    for slot in slots:
        own = taken.get(slot.name, ())
        others = [span for name, spans in taken.items() if name != slot.name for span in spans]
        is_shared = any(a < end and start < b for start, end in own for a, b in others)
        if own and (slot.name == wanted.asked or not is_shared):
            values[slot.name] = _only_value(slot, text, wanted)
    return values


def _spans_in(slot: Slot, text: str) -> list[Span]:
    """Where the values are of a slot that has choices or a pattern."""
    if slot.choices:
        return [span for _, span in _choices_in(slot, text)]
    return [found.span() for found in re.finditer(_as_word(slot.pattern or ""), text)]


def _is_free(slot: Slot) -> bool:
    return slot.type in ("text", "list", "object") and not slot.choices and not slot.pattern


def _kind_of(slot: Slot) -> str:
    if slot.choices or slot.pattern:
        return "form"
    return "number" if slot.type in ("number", "integer") else slot.type


def _only_value(slot: Slot, text: str, wanted: Wanted) -> JsonValue:
    """The only value in a message that fits a slot; None without one, or with several."""
    found: Iterable[JsonValue] = ()
    if slot.choices:
        found = [choice for choice, _ in _choices_in(slot, text)]
        if slot.type == "list":
            return [each for each in slot.choices if each in found] or None
    elif slot.type in _FINDERS:
        found = _FINDERS[slot.type](text, wanted)
    elif slot.type == "boolean" and (means(text, "yes") or means(text, "no")):
        return means(text, "yes")
    elif slot.pattern:
        found = [each[0] for each in re.finditer(_as_word(slot.pattern), text)]
    values = [*dict.fromkeys(cast("Iterable[str]", found))]
    return values[0] if len(values) == 1 else None


def _as_word(pattern: str) -> str:
    return rf"(?<![A-Za-z0-9_])(?:{pattern})(?![A-Za-z0-9_])"


def _numbers(text: str, wanted: Wanted) -> Iterator[JsonValue]:
    """The numbers of a text that are not part of a date, and that the user does not reject."""
    days = [span for _, span in dates_in(text, wanted.today)]
    for number, (start, end) in numbers_in(text):
        is_of_day = any(first < end and start < last for first, last in days)
        if not is_of_day and not _is_rejected(text, start):
            yield number


def _days(text: str, wanted: Wanted) -> Iterator[JsonValue]:
    for day, (start, _) in dates_in(text, wanted.today):
        if not _is_rejected(text, start):
            yield day.isoformat()


def _is_rejected(text: str, place: int) -> bool:
    """Whether the user rejects the value at a place."""
    return _NOT.search(text[max(0, place - _REACH) : place]) is not None


_FINDERS: dict[str, Callable[[str, Wanted], Iterator[JsonValue]]] = {
    "date": _days,
    "number": _numbers,
    "integer": _numbers,
}


def _choices_in(slot: Slot, text: str) -> list[tuple[str, Span]]:
    choices = cast("dict[str, tuple[str, ...]]", slot.choices)
    found = (
        (choice, span)
        for choice, words in choices.items()
        for word in (choice, *words)
        for span in places(word, text)
    )
    return [(choice, span) for choice, span in outermost(found) if not _is_rejected(text, span[0])]


def _small_word_marks(text: str, wanted: Wanted) -> Marks:
    """Where small words are by which slots of free text are called, in their order."""
    slots = [wanted.spec.slot(name) for name in wanted.names]
    words = {
        word: slot.name
        for slot in slots
        if slot.type == "text" and _is_free(slot)
        for word in aliases(slot)
        if word in SMALL
    }
    return sorted((span, name) for word, name in words.items() for span in places(word, text))


def _after_small_words(text: str, marks: Marks, wanted: Wanted) -> tuple[dict[str, str], str]:
    """The names after small words, where the message has only a command before them."""
    names = [name for _, name in marks]
    before = bare(text[: marks[0][0][0]]) if marks else ""
    words = {word for each in wanted.spec.commands for word in aliases(each)}
    is_about_them = wanted.asked in ("", COMMAND, *names) and before in ("", *words)
    is_open = all(name == wanted.asked or name not in wanted.job.collected_info for name in names)
    return names_after(text, marks, wanted.today) if is_about_them and is_open else ({}, text)


def _bare_answer(text: str, marks: Marks, asked: Slot) -> str:
    """An answer without the small word by which its slot is called; empty if it is about others."""
    names = [name for _, name in marks]
    if asked.name not in names and not (names and {*aliases(asked)} & SMALL):
        return text
    (start, end), first = marks[0]
    if text[:start].strip():
        return text
    return text[end:] if first == asked.name and len(marks) == 1 else ""


def _as_answer(message: str, slot: Slot) -> JsonValue:
    """Treat a whole message as the answer to a question, unless it is a question itself."""
    text = message.strip()
    if not text or is_question(text) or to_text(text) is None:
        return None
    if slot.type == "object":
        # A form of fields is all of the message.
        return text if to_object(text) is not None else None
    if slot.type == "text" and not slot.choices and not slot.pattern:
        if means(text, "yes") or means(text, "no"):
            return None
        return text.strip("\"'“”")
    # It is not a value of the slot, and the user is told so.
    return text if slot.type == "list" or len(text.split()) < _FEW else None
