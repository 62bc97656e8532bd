"""Read a command: whole, or not at all.

The grammar is small, and what people need of it is the message where they leave it; so it is read
by hand, one function for each rule of `docs/commands.md`, and not by a library for grammars.
"""

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from replan_local.commands import (
    AGGREGATES,
    PERIODS,
    Calculate,
    Command,
    CompareSteps,
    CompareTables,
    Condition,
    Describe,
    Figures,
    Key,
    ListTables,
    Measure,
    Report,
    Search,
)
from replan_local.refusals import CannotAnswerError, did_you_mean

LONGEST = 2_000
"""Characters of a command."""

RESERVED = frozenset(
    ("by", "from", "where", "and", "top", "bottom", "of", "is", "not", "with", "in", "for")
)
"""Words that are not names, unless they are in quotes."""

_TOKEN = re.compile(
    r"\s*(?:\"(?P<double>[^\"]*)\"|'(?P<single>[^']*)'|`(?P<back>[^`]*)`"
    r"|(?P<sign>>=|<=|!=|>|<|=|,)|(?P<word>[^\s,<>!=\"'`]+))"
)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_OPERATORS = {"is": "is", "=": "is", "!=": "is not", **{s: s for s in (">=", "<=", ">", "<")}}
_FORMS = {
    "list": "list tables",
    "describe": "describe TABLE",
    "compare": "compare step N and step M by COLUMN",
    "search": 'search notes for "WORDS" [in FILE] [top N]',
    "calculate": "calculate EXPRESSION",
    "write": 'write report ["TITLE"] [with bar|line chart]',
}
_FIGURES = "total COLUMN [by COLUMN] from TABLE [where COLUMN is VALUE] [top N]"
# Articles mean nothing, so a sentence without them may be proposed; it is not run unasked.
_ARTICLES = re.compile(r"\b(?:the|an?|please)\s+", re.IGNORECASE)

_Part = TypeVar("_Part")


class Reader:
    """Reads a text from left to right; whatever does not fit is refused where it is."""

    def __init__(self, text: str) -> None:
        self._text = text.strip()
        self._tokens = _tokens(self._text)
        self._at = 0

    def whole(self, rule: Callable[["Reader"], _Part]) -> _Part:
        part = rule(self)
        if self._peek()[0]:
            raise self.refusal("the end")
        return part

    def begins(self, *words: str) -> bool:
        kind, text, _ = self._peek()
        return kind in ("word", "sign") and text.casefold() in words

    def takes(self, *words: str) -> str:
        """Take the next word if it is one of these, in small letters; else empty."""
        return self._next().casefold() if self.begins(*words) else ""

    def needs(self, *words: str) -> str:
        if not self.begins(*words):
            raise self.refusal(*words)
        return self._next().casefold()

    def name(self, what: str) -> str:
        """Take a name: a word of no other use, or a quoted text."""
        kind, text, _ = self._peek()
        if kind in ("", "sign") or not text.strip() or self.begins(*RESERVED):
            raise self.refusal(what)
        return self._next()

    def is_quoted(self) -> bool:
        return self._peek()[0] in ("double", "single", "back")

    def number(self) -> int:
        """Take a whole number from 1."""
        kind, text, _ = self._peek()
        if kind != "word" or not re.fullmatch(r"[1-9]\d{0,5}", text):
            raise self.refusal("a whole number from 1")
        return int(self._next())

    def value(self) -> str | int | float:
        kind, text, _ = self._peek()
        if kind != "word" or not _NUMBER.fullmatch(text):
            return self.name("a value")
        return float(self._next()) if "." in text else int(self._next())

    def rest(self) -> str:
        start = self._tokens[self._at - 1][2]
        self._at = len(self._tokens)
        return self._text[start:].strip()

    def refusal(self, *expected: str) -> CannotAnswerError:
        """Return an error that says what is expected here, and what is here instead."""
        before = self._text[: self._tokens[self._at - 1][2]].strip() if self._at else ""
        where = f"after '{before}'" if before else "at the beginning"
        _, text, _ = self._peek()
        message = f"'{self._text}' is not a command: expected {_either(expected)} {where}, not "
        hint = did_you_mean(text, expected) if text else ""
        return CannotAnswerError(f"{message}{repr(text) if text else 'nothing'}.{hint}")

    def _peek(self) -> tuple[str, str, int]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("", "", 0)

    def _next(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1][1]


def parse(text: str) -> Command:
    text = text.strip()
    text = text[:-1] if text.endswith(".") and not text.endswith("..") else text
    try:
        return Reader(text).whole(_command)
    except CannotAnswerError as refusal:
        raise CannotAnswerError(f"{refusal}{_proposal(text)}") from None


def measure(reader: Reader) -> Measure:
    aggregate = reader.needs(*AGGREGATES)
    column = "" if aggregate == "count" else reader.name("a column")
    return Measure.model_validate({"aggregate": aggregate, "column": column})


def key(reader: Reader) -> Key:
    quoted, name = reader.is_quoted(), reader.name("a column")
    if quoted or name.casefold() not in PERIODS or not reader.takes("of"):
        return Key(column=name)
    return Key.model_validate({"period": name.casefold(), "column": reader.name("a column")})


def condition(reader: Reader) -> Condition:
    column = reader.name("a column")
    operator = _OPERATORS[reader.needs(*_OPERATORS)]
    operator = "is not" if operator == "is" and reader.takes("not") else operator
    value = reader.value()
    return Condition.model_validate({"column": column, "operator": operator, "value": value})


def listed(reader: Reader, rule: Callable[[Reader], _Part]) -> tuple[_Part, ...]:
    """Read parts between commas or "and"."""
    found = [rule(reader)]
    while reader.takes(",", "and"):
        found.append(rule(reader))
    return tuple(found)


def conditions(reader: Reader) -> tuple[Condition, ...]:
    return listed(reader, condition)


def _command(reader: Reader) -> Command:
    if first := reader.takes(*_RULES):
        return _RULES[first](reader)
    if not reader.begins(*AGGREGATES):
        raise reader.refusal(*AGGREGATES, *_RULES)
    return _figures(reader)


def _figures(reader: Reader) -> Figures:
    measures = listed(reader, measure)
    by = listed(reader, key) if reader.takes("by") else ()
    reader.needs("from", *(() if by else ("by",)))
    table = reader.name("a table")
    where = conditions(reader) if reader.takes("where") else ()
    end = reader.takes("top", "bottom")
    most = {end: reader.number()} if end else {}
    return Figures.model_validate(
        {"table": table, "measures": measures, "by": by, "where": where, **most}
    )


def _list_tables(reader: Reader) -> ListTables:
    reader.needs("tables")
    return ListTables()


def _compare(reader: Reader) -> CompareSteps | CompareTables:
    if reader.takes("step"):
        one = reader.number()
        reader.needs("and")
        reader.needs("step")
        other = reader.number()
        reader.needs("by")
        return CompareSteps(steps=(one, other), by=reader.name("a column"))
    one, table = _measured(reader)
    reader.needs("and")
    other, other_table = _measured(reader)
    reader.needs("by")
    return CompareTables(measures=(one, other), tables=(table, other_table), by=key(reader))


def _measured(reader: Reader) -> tuple[Measure, str]:
    found = measure(reader)
    reader.needs("from")
    return found, reader.name("a table")


def _search(reader: Reader) -> Search:
    reader.needs("notes")
    reader.needs("for")
    query = reader.name('a word, or several in quotes as in "late returns"')
    file = reader.name("a file") if reader.takes("in") else ""
    return Search(query=query, file=file, top=reader.number() if reader.takes("top") else None)


def _calculate(reader: Reader) -> Calculate:
    expression = reader.rest()
    if not expression:
        raise reader.refusal("an expression")
    return Calculate(expression=expression)


def _write(reader: Reader) -> Report:
    reader.takes("a")
    reader.needs("report")
    title = reader.name("a title") if reader.is_quoted() else ""
    if not reader.takes("with"):
        return Report(title=title)
    reader.takes("a")
    shape = reader.takes("bar", "line") or "bar"
    reader.needs("chart")
    return Report.model_validate({"title": title, "chart": shape})


_RULES: Mapping[str, Callable[[Reader], Command]] = {
    "list": _list_tables,
    "describe": lambda reader: Describe(table=reader.name("a table")),
    "compare": _compare,
    "search": _search,
    "calculate": _calculate,
    "write": _write,
}


def _tokens(text: str) -> list[tuple[str, str, int]]:
    if len(text) > LONGEST:
        message = f"The command has {len(text):,} characters; at most {LONGEST:,} are read."
        raise CannotAnswerError(message)
    found: list[tuple[str, str, int]] = []
    place = 0
    while place < len(text):
        token = _TOKEN.match(text, place)
        if token is None or token.lastgroup is None:
            message = (
                f"'{text}' is not a command: {text[place:].strip()[:80]} is not allowed there."
            )
            raise CannotAnswerError(message)
        found.append((token.lastgroup, token[token.lastgroup], token.end()))
        place = token.end()
    return found


def _either(expected: tuple[str, ...]) -> str:
    *most, last = expected
    return f"{', '.join(most)} or {last}" if most else last


def _proposal(text: str) -> str:
    """What can be said instead: the sentence without its articles, else the form of the command."""
    bare = _ARTICLES.sub("", text)
    try:
        Reader(bare).whole(_command)
    except CannotAnswerError:
        first = text.partition(" ")[0].casefold()
        form = _FORMS.get(first, _FIGURES if first in AGGREGATES else "")
        return f" The form is: {form}" if form else ""
    return f" Say: {bare}" if bare != text else ""
