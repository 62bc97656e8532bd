"""Write the SQL for figures of one table; a text in it is quoted, whatever it is."""

import re

from replan_local.commands import Figures, Part

_PERIODS = {
    "day": "strftime({0}, '%Y-%m-%d')",
    "week": "strftime({0}, '%G-W%V')",
    "month": "strftime({0}, '%Y-%m')",
    "quarter": "concat(year({0}), '-Q', quarter({0}))",
    "year": "strftime({0}, '%Y')",
}
FUNCTIONS = {
    "count": "count(*)",
    "total": "sum({0})",
    "average": "avg({0})",
    "median": "median({0})",
    "smallest": "min({0})",
    "largest": "max({0})",
    "distinct": "count(DISTINCT {0})",
}
_OPERATORS = {"is": "=", "is not": "!=", "=": "=", "!=": "!="}
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def unquoted(name: str) -> str:
    return name[1:-1] if name[0] in "\"'`" else str(name)


def measure(aggregate: str, column: str = "") -> Part:
    sql = FUNCTIONS[aggregate].format(quoted(column))
    return Part(said=f"{aggregate} {column}".strip(), sql=sql)


def key(column: str) -> Part:
    return Part(said=column, sql=quoted(column))


def period_key(period: str, column: str) -> Part:
    sql = _PERIODS[period].format(f"CAST({quoted(column)} AS TIMESTAMP)")
    return Part(said=f"{period} of {column}", sql=sql, is_period=True)


def condition(column: str, operator: str, value: str) -> Part:
    """A test of a column; texts are compared without regard to case."""
    text, sign = unquoted(value), _OPERATORS.get(operator)
    if _NUMBER.fullmatch(value):
        compared = value
    elif sign or not text[0].isdigit():
        compared = f"{literal(text)} COLLATE NOCASE"
    else:
        # DuckDB takes it for what the column has, such as a date.
        compared = literal(text)
    sql = f"{quoted(column)} {sign or operator} {compared}"
    return Part(said=f"{column} {operator} {text}", sql=sql)


def select_of(asked: Figures, source: str) -> str:
    """The SELECT that computes what is asked for."""
    # Without other names for its columns: DuckDB would take them for columns of the table.
    selected = ", ".join(part.sql for part in (*asked.by, *asked.measures))
    group = f" GROUP BY ALL ORDER BY {_order(asked)}" if asked.by else ""
    limit = asked.top or asked.bottom
    return f"SELECT {selected} {source}{group}" + (f" LIMIT {limit}" if limit else "")


def source_of(asked: Figures, view: str) -> str:
    """The part of the SELECT that says which rows count."""
    where = f" WHERE {' AND '.join(part.sql for part in asked.where)}" if asked.where else ""
    return f"FROM {quoted(view)}{where}"


def _order(asked: Figures) -> str:
    """The largest first figure first, or the smallest; periods stand in their order in time."""
    keys = len(asked.by)
    by_keys = ", ".join(f"{place} NULLS LAST" for place in range(1, keys + 1))
    if any(key.is_period for key in asked.by) and not (asked.top or asked.bottom):
        return by_keys
    return f"{keys + 1} {'ASC' if asked.bottom else 'DESC'} NULLS LAST, {by_keys}"
