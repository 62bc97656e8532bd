"""Describe a table: its columns, their ranges, and what is missing in them."""

# ruff: noqa: S608 - names are quoted, values are parameters, a person's query is checked.

from replan_local.analyst.tables import Column, Database, quoted
from replan_local.answer_table import AnswerTable, shown
from replan_local.refusals import CannotAnswerError

_MOST_COLUMNS = 30


def profile(database: Database, view: str, name: str) -> tuple[AnswerTable, list[str]]:
    """Summarise every column of a table."""
    columns = database.columns(view)
    if not columns:
        message = f"{name} has no columns."
        raise CannotAnswerError(message)
    described = columns[:_MOST_COLUMNS]
    measures = ", ".join(_measures(column) for column in described)
    _, rows = database.select(
        f"SELECT count(*), {measures} FROM {quoted(view)}",
        most=1,
    )
    total, *values = rows[0]
    cells = tuple(
        (column.name, column.type.casefold(), *values[5 * place : 5 * place + 5])
        for place, column in enumerate(described)
    )
    table = AnswerTable(
        title=f"Profile of {name}",
        columns=("column", "type", "missing", "different", "smallest", "largest", "average"),
        cells=cells,
        total_rows=len(columns),
    )
    return table, _findings(columns, cells, int(str(total)))


def _measures(column: Column) -> str:
    name = quoted(column.name)
    average = f"avg({name})" if column.kind == "number" else "NULL"
    return (
        f"count(*) - count({name}), count(DISTINCT {name}), "
        f"left(CAST(min({name}) AS VARCHAR), 40), left(CAST(max({name}) AS VARCHAR), 40), {average}"
    )


def _findings(
    columns: tuple[Column, ...], cells: tuple[tuple[object, ...], ...], total: int
) -> list[str]:
    findings = [f"{total} rows, {len(columns)} columns."]
    missing = [f"{row[0]} ({shown(row[2])})" for row in cells if row[2]]
    findings.append(f"Missing values: {', '.join(missing)}." if missing else "No value is missing.")
    kinds = {column.name: column.kind for column in columns}
    findings += [
        f"{row[0]} runs from {shown(row[4])} to {shown(row[5])}."
        for row in cells
        if kinds.get(str(row[0])) == "date" and row[4] is not None
    ]
    return findings
