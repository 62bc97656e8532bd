"""Compare files by a column that they share."""

from collections.abc import Sequence

from replan_local.analyst.aggregation import aggregate
from replan_local.analyst.comparison import compare_tables
from replan_local.analyst.names import ColumnNames
from replan_local.analyst.question import Measure, Question
from replan_local.analyst.settling import is_key
from replan_local.analyst.tables import Column, Database, TableFile
from replan_local.answer_table import AnswerTable
from replan_local.refusals import CannotAnswerError
from replan_local.words import joined, words_of

_MOST_GROUPS = 10_000


def compare_files(
    database: Database, files: Sequence[TableFile], words: Sequence[str]
) -> tuple[AnswerTable, list[str]]:
    """Aggregate each file by the shared column and join the results on it.

    Raises:
        CannotAnswerError: The files share no column, or several and none is named.
    """
    columns = [database.columns(file.view) for file in files]
    key = _shared_column(files, columns, words)
    tables: list[AnswerTable] = []
    for file, own, measures in zip(files, columns, _measures(columns, words), strict=True):
        group = next(column.name for column in own if _same(column.name, key))
        question = Question(measures=measures, groups=(group,))
        table, _ = aggregate(database, file.view, question, most=_MOST_GROUPS)
        tables.append(table.replace(title=file.name))
    return compare_tables(tables, words_of(key))


def _shared_column(
    files: Sequence[TableFile], tables: Sequence[Sequence[Column]], words: Sequence[str]
) -> str:
    first, *others = tables
    shared = [
        column
        for column in first
        if all(any(_same(column.name, other.name) for other in table) for table in others)
    ]
    named = [column for column in shared if set(words_of(column.name)) <= set(words)]
    texts = [column for column in shared if column.kind == "text"]
    candidates = [column for column in named if column.kind != "number"] or (
        texts if len(texts) == 1 else shared
    )
    if len(candidates) == 1:
        return candidates[0].name
    names = joined([file.name for file in files])
    if not shared:
        message = f"{names} share no column to compare them by."
        raise CannotAnswerError(message)
    message = f"{names} share {', '.join(column.name for column in shared)}. Name one after 'by'."
    raise CannotAnswerError(message)


def _measures(
    tables: Sequence[Sequence[Column]], words: Sequence[str]
) -> list[tuple[Measure, ...]]:
    """What to compute of each table: what is named, else what all have, else the rows."""
    amounts = [
        [column for column in table if column.kind == "number" and not is_key(column)]
        for table in tables
    ]
    named = [_named(columns, words) for columns in amounts]
    if not any(named):
        first, *others = amounts
        named = [
            [column for column in columns if all(_has(other, column) for other in (first, *others))]
            for columns in amounts
        ]
    return [
        tuple(Measure(aggregate="sum", column=column.name) for column in columns)
        or (Measure(aggregate="count"),)
        for columns in named
    ]


def _named(columns: Sequence[Column], words: Sequence[str]) -> list[Column]:
    names = ColumnNames(columns, "")
    found = (names.at(words, place) for place in range(len(words)))
    return [match.column for match in found if match is not None]


def _has(columns: Sequence[Column], wanted: Column) -> bool:
    return any(_same(column.name, wanted.name) for column in columns)


def _same(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()
