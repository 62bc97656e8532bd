"""A sentence of the language means exactly one thing; any other one is refused."""

import sys

import pytest
from hypothesis import given, strategies as st

from cases import cases_of
from replan_local.commands import Calculate, Compare, Figures, Query, Report, Search
from replan_local.figures import condition, key, measure
from replan_local.grammar import _parser, parse
from replan_local.refusals import CannotAnswerError

CASES = cases_of(__file__)

AGGREGATES = ("count", "total", "average", "median", "smallest", "largest", "distinct")
RESERVED = {"by", "from", "where", "and", "top", "of", "is", "not", "in", "for"}

# A part of a sentence: how it is said, and what it means.
BARE = st.from_regex(r"[a-z_][a-z0-9_]{0,6}", fullmatch=True).filter(
    lambda word: word not in RESERVED
)
QUOTED = st.text(alphabet="ab .,;<=é和'", min_size=1, max_size=8).filter(str.strip)
NAME = BARE.map(lambda word: (word, word)) | QUOTED.map(lambda text: (f'"{text}"', text))
COUNT = st.integers(1, 999)
TABLE = BARE.map(lambda word: (f"data/{word}.csv", f"data/{word}.csv"))
OPERATORS = ("is", "is not", "=", "!=", ">", "<=")


@st.composite
def measures(draw):
    aggregate = draw(st.sampled_from(AGGREGATES))
    if aggregate == "count":
        return "count", measure("count")
    said, column = draw(NAME)
    return f"{aggregate} {said}", measure(aggregate, column)


@st.composite
def keys(draw):
    said, column = draw(NAME)
    return said, key(column)


@st.composite
def conditions(draw):
    said, column = draw(NAME)
    operator = draw(st.sampled_from(OPERATORS))
    numbers = st.integers(-99, 99) | st.sampled_from([0.5, -2.25])
    value = draw(NAME | numbers.map(lambda number: (str(number), number)))[0]
    return f"{said} {operator} {value}", condition(column, operator, value)


@st.composite
def figures(draw):
    asked = draw(st.lists(measures(), min_size=1, max_size=3))
    by = draw(st.lists(keys(), max_size=2))
    where = draw(st.lists(conditions(), max_size=2))
    table, name = draw(TABLE)
    top = draw(st.none() | COUNT)
    said = draw(st.sampled_from([", ", " and "])).join(text for text, _ in asked)
    said += f" by {', '.join(text for text, _ in by)}" if by else ""
    said += f" from {table}"
    said += f" where {' and '.join(text for text, _ in where)}" if where else ""
    said += f" top {top}" if top else ""
    meant = Figures(
        table=name,
        measures=tuple(each for _, each in asked),
        by=tuple(each for _, each in by),
        where=tuple(each for _, each in where),
        top=top,
    )
    return said, meant


@st.composite
def others(draw):
    (column, meant), (file, path), one, other = draw(NAME), draw(TABLE), draw(COUNT), draw(COUNT)
    text = draw(QUOTED)
    return draw(
        st.sampled_from(
            [
                ("list tables", Query()),
                ("SELECT max(a) FROM t", Query(sql="SELECT max(a) FROM t")),
                (
                    f"compare step {one} and step {other} by {column}",
                    Compare(steps=(one, other), by=meant),
                ),
                (f"search notes for {column}", Search(query=meant)),
                (
                    f'search notes for "{text}" in {file} top {one}',
                    Search(query=text, file=path, top=one),
                ),
                (f"calculate {one} + {other}", Calculate(expression=f"{one} + {other}")),
                (f'write report "{text}"', Report(title=text)),
                ("write report", Report()),
                ("write a report", Report()),
            ]
        )
    )


SENTENCES = figures() | others()
# Words that people write and the language does not have: each turns a meaning, or seems to.
FOREIGN = ["excluding", "except", "only", "without", "roughly", "not", "or", "then", "the", "per"]


@given(SENTENCES, st.sampled_from(["{}", "{}.", "  {} ", "{}\n"]))
def test_a_sentence_of_the_language_means_what_it_says(sentence, around):
    said, meant = sentence
    assert parse(around.format(said)) == meant


@given(SENTENCES, st.data())
def test_a_word_more_less_or_other_is_refused_or_means_what_is_then_said(sentence, data):
    said, meant = sentence
    words = said.split(" ")
    at = data.draw(st.integers(0, len(words) - 1))
    foreign = data.draw(st.sampled_from(FOREIGN))
    change = data.draw(st.sampled_from(["put in", "put instead", "left out"]))
    rest = words[at:] if change == "put in" else words[at + 1 :]
    near = " ".join([*words[:at], *([] if change == "left out" else [foreign]), *rest])
    if near == said:
        return
    try:
        found = parse(near)
    except CannotAnswerError:
        return
    # What is understood holds every word that stands there: nothing was passed over.
    assert _words_of(found) == _said_words(near), (near, found, meant)


def _said_words(text):
    """The words of a sentence that mean something, whatever their order."""
    return sorted(_bare(text))


def _words_of(command):
    """The words that a command was said in, told from its fields alone."""
    match command:
        case Figures():
            parts = [each.said for each in (*command.measures, *command.by)]
            parts += ["by"] if command.by else []
            parts += ["from", command.table, *(["where"] if command.where else [])]
            parts += [each.said for each in command.where]
            parts += [f"top {command.top}"] if command.top else []
        case Query():
            parts = [command.sql or "list tables"]
        case Compare():
            one, other = command.steps
            parts = [f"compare step {one} step {other} by {command.by}"]
        case Search():
            parts = ["search notes for", command.query]
            parts += ["in", command.file] if command.file else []
            parts += [f"top {command.top}"] if "top" in command.model_fields_set else []
        case Calculate():
            parts = ["calculate", command.expression]
        case Report():
            parts = ["write report", command.title]
    return sorted(_bare(" ".join(parts)))


def _bare(text):
    """Words without the signs that only divide them, and with one spelling for each operator."""
    for sign, word in (("!=", " is not "), (">=", " >= "), ("<=", " <= ")):
        text = text.replace(sign, word)
    for sign in "\",'":
        text = text.replace(sign, " ")
    words = [{"=": "is"}.get(word, word) for word in text.split()]
    # Between parts "and" divides like a comma, and a report may have its article.
    return [word for word in words if word not in ("and", "a")]


def test_what_is_no_sentence_is_refused_where_it_leaves_the_language():
    for said, told in CASES["refused"]:
        with pytest.raises(CannotAnswerError) as refusal:
            parse(said)
        assert told in str(refusal.value)


def test_without_lark_a_command_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "lark", None)
    _parser.cache_clear()
    with pytest.raises(CannotAnswerError, match=r'pip install "replan\[local\]"'):
        parse("list tables")
