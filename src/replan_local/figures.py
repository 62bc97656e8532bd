"""Write the SQL for figures of one table."""

from collections.abc import Mapping

from replan_local.answer_table import MOST_ROWS
from replan_local.commands import Condition, Figures, Key, Measure
from replan_local.refusals import CannotAnswerError, did_you_mean
from replan_local.tables import TableFile, literal, quoted

_PERIODS = {
    "day": "strftime({0}, '%Y-%m-%d')",
    "week": "strftime({0}, '%G-W%V')",
    "month": "strftime({0}, '%Y-%m')",
    "quarter": "concat(year({0}), '-Q', quarter({0}))",
    "year": "strftime({0}, '%Y')",
}
_FUNCTIONS = {
    "count": "count(*)",
    "total": "sum({0})",
    "average": "avg({0})",
    "median": "median({0})",
    "smallest": "min({0})",
    "largest": "max({0})",
    "distinct": "count(DISTINCT {0})",
}
_OPERATORS = {"is": "=", "is not": "!="}  # the others are as DuckDB has them


def select_of(asked: Figures, file: TableFile, columns: Mapping[str, str]) -> str:
    """The SELECT that computes what is asked of a table with these columns."""
    expressions = {str(each): _key(each, file, columns) for each in asked.by}
    expressions |= {str(each): _figure(each, file, columns) for each in asked.measures}
    if len(expressions) < len(asked.by) + len(asked.measures):
        raise CannotAnswerError(f"'{asked}' asks for the same thing twice.")
    selected = ", ".join(f"{each} AS {quoted(name)}" for name, each in expressions.items())
    group = f" GROUP BY ALL ORDER BY {_order(asked)}" if asked.by else ""
    limit = asked.top or asked.bottom
    end = f" LIMIT {limit}" if limit else ""
    return f"SELECT {selected} {source_of(asked, file, columns)}{group}{end}"


def source_of(asked: Figures, file: TableFile, columns: Mapping[str, str]) -> str:
    """The part of the SELECT that says which rows count."""
    tests = [_test(each, file, columns) for each in asked.where]
    return f"FROM {quoted(file.view)}" + (f" WHERE {' AND '.join(tests)}" if tests else "")


def _column(name: str, file: TableFile, columns: Mapping[str, str]) -> str:
    """The name of a column as the table writes it."""
    # DuckDB lets no two columns of a table have one name, whatever their case.
    found = next((each for each in columns if each.casefold() == name.casefold()), None)
    if found is not None:
        return found
    message = f"No column '{name}' in {file.name}. It has: {', '.join([*columns][:MOST_ROWS])}."
    raise CannotAnswerError(f"{message}{did_you_mean(name, columns)}")


def _key(key: Key, file: TableFile, columns: Mapping[str, str]) -> str:
    column = quoted(_column(key.column, file, columns))
    return _PERIODS[key.period].format(f"CAST({column} AS TIMESTAMP)") if key.period else column


def _figure(measure: Measure, file: TableFile, columns: Mapping[str, str]) -> str:
    column = quoted(_column(measure.column, file, columns)) if measure.column else ""
    return _FUNCTIONS[measure.aggregate].format(column)


def _test(each: Condition, file: TableFile, columns: Mapping[str, str]) -> str:
    column, operator = _column(each.column, file, columns), _OPERATORS.get(each.operator)
    name, value = quoted(column), literal(str(each.value))
    if columns[column] == "VARCHAR":
        return f"lower({name}) {operator or each.operator} lower({value})"
    # DuckDB reads a text as what it is compared with: a number, a date, a time.
    value = value if isinstance(each.value, str) else str(each.value)
    return f"{name} {operator or each.operator} {value}"


def _order(asked: Figures) -> str:
    """The largest first figure first, or the smallest; periods stand in their order in time."""
    keys = len(asked.by)
    by_keys = ", ".join(f"{place} NULLS LAST" for place in range(1, keys + 1))
    if any(key.period for key in asked.by) and not (asked.top or asked.bottom):
        return by_keys
    return f"{keys + 1} {'ASC' if asked.bottom else 'DESC'} NULLS LAST, {by_keys}"
