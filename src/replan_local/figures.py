"""Compute figures of one table: write the SQL, run it, and name the largest and the smallest."""

from collections.abc import Sequence

from replan_local.answer_table import MOST_ROWS, AnswerTable, number, shown
from replan_local.commands import Condition, Figures, Key, Measure
from replan_local.refusals import CannotAnswerError, did_you_mean
from replan_local.tables import Column, Database, TableFile, quoted

_PERIODS = {
    "day": "strftime({0}, '%Y-%m-%d')",
    "week": "strftime({0}, '%G-W%V')",
    "month": "strftime({0}, '%Y-%m')",
    "quarter": "concat(year({0}), '-Q', quarter({0}))",
    "year": "strftime({0}, '%Y')",
}
_FUNCTIONS = {
    "total": "sum({0})",
    "average": "avg({0})",
    "median": "median({0})",
    "smallest": "min({0})",
    "largest": "max({0})",
    "distinct": "count(DISTINCT {0})",
}
_OPERATORS = {"is": "=", "is not": "!="}


def figures(
    database: Database, file: TableFile, asked: Figures, *, most: int = MOST_ROWS
) -> tuple[AnswerTable, list[str]]:
    """Compute what is asked of a table; return the table and the findings about it."""
    columns = _Columns(database.columns(file.view), file.name)
    names = [*map(str, asked.by), *map(str, asked.measures)]
    if len(set(names)) < len(names):
        raise CannotAnswerError(f"'{asked}' asks for the same thing twice. Name it once.")
    expressions = [
        *(_key(each, columns) for each in asked.by),
        *(_number(each, columns) for each in asked.measures),
    ]
    tests = [_test(each, columns) for each in asked.where]
    selected = ", ".join(
        f"{expression} AS {quoted(name)}"
        for expression, name in zip(expressions, names, strict=True)
    )
    keys = len(asked.by)
    condition = f" WHERE {' AND '.join(tests)}" if tests else ""
    group = f" GROUP BY {', '.join(map(str, range(1, keys + 1)))}" if keys else ""
    source = f"FROM {quoted(file.view)}{condition}"
    limit = asked.top or asked.bottom
    values = [each.value for each in asked.where]
    _, rows = database.select(
        f"SELECT {selected}, count(*) OVER () {source}{group}{_order(asked)}",
        values,
        most=min(limit or most, most),
    )
    _, ((count,),) = database.select(f"SELECT count(*) {source}", values, most=1)
    total = int(str(rows[0][-1])) if rows else 0
    table = AnswerTable(
        title=str(asked)[0].upper() + str(asked)[1:],
        columns=tuple(names),
        cells=tuple(row[:-1] for row in rows),
        total_rows=min(total, limit or total),
        key_count=keys,
    )
    conditions = [str(each) for each in asked.where]
    return table, ["; ".join([f"{file.name}, {count} rows", *conditions]), *_findings(table)]


class _Columns:
    """The columns of a table, found by their whole names."""

    def __init__(self, columns: Sequence[Column], table: str) -> None:
        self._columns = columns
        self._table = table

    def __getitem__(self, name: str) -> Column:
        same = [column for column in self._columns if column.name == name]
        same = same or [each for each in self._columns if each.name.casefold() == name.casefold()]
        if len(same) == 1:
            return same[0]
        names = [column.name for column in self._columns]
        message = f"No column '{name}' in {self._table}. It has: {', '.join(names[:MOST_ROWS])}."
        raise CannotAnswerError(f"{message}{did_you_mean(name, names)}")


def _key(key: Key, columns: _Columns) -> str:
    column = quoted(columns[key.column].name)
    return _PERIODS[key.period].format(f"CAST({column} AS TIMESTAMP)") if key.period else column


def _number(measure: Measure, columns: _Columns) -> str:
    if not measure.column:
        return "count(*)"
    return _FUNCTIONS[measure.aggregate].format(quoted(columns[measure.column].name))


def _test(each: Condition, columns: _Columns) -> str:
    column, operator = columns[each.column], _OPERATORS.get(each.operator, each.operator)
    name = quoted(column.name)
    if column.kind == "text":
        return f"lower(CAST({name} AS VARCHAR)) {operator} lower(CAST(? AS VARCHAR))"
    return f"{name} {operator} {'CAST(? AS TIMESTAMP)' if column.kind == 'date' else '?'}"


def _order(asked: Figures) -> str:
    keys = len(asked.by)
    if not keys:
        return ""
    by_keys = ", ".join(f"{place} NULLS LAST" for place in range(1, keys + 1))
    by_number = f"{keys + 1} {'ASC' if asked.bottom else 'DESC'} NULLS LAST"
    in_time = any(key.period for key in asked.by) and not (asked.top or asked.bottom)
    return f" ORDER BY {by_keys if in_time else f'{by_number}, {by_keys}'}"


def _findings(table: AnswerTable) -> list[str]:
    if not table.cells or table.cells[0] == (None,) * len(table.columns):
        return ["No row fits."]
    at = table.key_count
    known = [row for row in table.cells if number(row[at]) is not None]
    if not at or len(known) < 2 or table.is_cut:  # noqa: PLR2004 - one has no other
        return []
    ordered = sorted(known, key=lambda row: float(row[at]))
    return [
        f"{word}: {' / '.join(map(shown, row[:at]))} with {shown(row[at])}."
        for word, row in (("Largest", ordered[-1]), ("Smallest", ordered[0]))
    ]
