"""Answer a command about the tables of a folder."""

import json

from replan_local.answer_table import MOST_ROWS
from replan_local.commands import Figures, Query
from replan_local.figures import select_of, source_of
from replan_local.named_files import find_file
from replan_local.refusals import CannotAnswerError
from replan_local.tables import TableFile, Tables


def answer(command: Figures | Query, tables: Tables) -> str:
    if isinstance(command, Figures):
        return _figures(command, tables)
    return _selected(command.sql, tables) if command.sql.strip() else _list(tables)


def _figures(query: Figures, tables: Tables) -> str:
    file = find_file(query.table, tables.files, "table")
    tables.open(file)
    names = [*map(str, (*query.by, *query.measures))]
    if len(set(names)) < len(names):
        raise CannotAnswerError(f"'{query}' asks for the same thing twice.")
    source = source_of(query, file.view)
    title = str(query)[0].upper() + str(query)[1:]
    table = tables.answer(title, select_of(query, source, names), key_count=len(query.by))
    ((count,),) = tables.answer("", f"SELECT count(*) {source}").rows
    return table.markdown("; ".join([f"{file.name}, {count} rows", *map(str, query.where)]))


def _selected(sql: str, tables: Tables) -> str:
    """Run one SELECT; only the tables that it names are opened."""
    tree = tables.checked(sql)
    used = [
        file
        for file in tables.files
        if f'"table_name":{json.dumps(file.view, ensure_ascii=False)}'.casefold() in tree.casefold()
    ]
    for file in used:
        tables.open(file)
    table = tables.answer("Query", tables.sql_of(tree))
    return table.markdown(", ".join(file.name for file in used) or "no file")


def _list(tables: Tables) -> str:
    if not tables.files:
        return "The folder has no CSV, Parquet or JSON file."
    names = ", ".join(file.name for file in tables.files)
    lines = [f"- {_columns_of(file, tables)}" for file in tables.files]
    return "\n".join([f"The tables are: {names}.", "", *lines])


def _columns_of(file: TableFile, tables: Tables) -> str:
    try:
        columns = tables.open(file)
    except CannotAnswerError as refusal:
        return str(refusal)
    told = [f"{name} ({kind.lower()})" for name, kind in columns.items()][:MOST_ROWS]
    more = f" and {len(columns) - MOST_ROWS} more" if len(columns) > MOST_ROWS else ""
    return f"{file.name}, in SQL {file.view}: {', '.join(told)}{more}"
