"""Write the SQL for figures of one table; a text in it is quoted, whatever it is."""

import re
from collections.abc import Sequence

from replan_local.commands import Figures, Part

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


def condition(column: str, operator: str, value: str) -> Part:
    """A test of a column; texts are compared without regard to case."""
    text, sign = unquoted(value), _OPERATORS.get(operator)
    if not _NUMBER.fullmatch(value):
        # DuckDB takes what begins with a digit for what the column has, such as a date.
        is_text = sign or not text[0].isdigit()
        value = literal(text) + (" COLLATE NOCASE" if is_text else "")
    sql = f"{quoted(column)} {sign or operator} {value}"
    return Part(said=f"{column} {operator} {text}", sql=sql)


def select_of(asked: Figures, source: str, names: Sequence[str]) -> str:
    """The SELECT that computes what is asked for, with these names for its columns."""
    # Names within it DuckDB would take for columns of the table.
    selected = ", ".join(part.sql for part in (*asked.by, *asked.measures))
    columns = ", ".join(map(quoted, names))
    keys = range(1, len(asked.by) + 1)
    order = ", ".join(f"{place} NULLS LAST" for place in (f"{len(keys) + 1} DESC", *keys))
    group = f" GROUP BY ALL ORDER BY {order}" if keys else ""
    limit = f" LIMIT {asked.top}" if asked.top else ""
    return f"FROM (SELECT {selected} {source}{group}{limit}) AS answer({columns})"


def source_of(asked: Figures, view: str) -> str:
    """The part of the SELECT that says which rows count."""
    where = f" WHERE {' AND '.join(part.sql for part in asked.where)}" if asked.where else ""
    return f"FROM {quoted(view)}{where}"
