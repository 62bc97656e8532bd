"""Answer a question to one table: write the SQL, run it, and say what stands out."""

# ruff: noqa: S608 - names are quoted, values are parameters, a person's query is checked.

from replan_local.analyst.question import Filter, Measure, Period, Question
from replan_local.analyst.tables import Database, quoted
from replan_local.answer_table import MOST_ROWS, AnswerTable, number, shown

_PERIODS: dict[Period, str] = {
    "day": "strftime({0}, '%Y-%m-%d')",
    "week": "strftime({0}, '%G-W%V')",
    "month": "strftime({0}, '%Y-%m')",
    "quarter": "concat(year({0}), '-Q', quarter({0}))",
    "year": "strftime({0}, '%Y')",
}
_FUNCTIONS = {
    "sum": "sum({0})",
    "avg": "avg({0})",
    "median": "median({0})",
    "min": "min({0})",
    "max": "max({0})",
    "count": "count({0})",
    "distinct": "count(DISTINCT {0})",
}


class Query:
    """A question in SQL, with the values that it leaves as parameters."""

    def __init__(self, question: Question, view: str) -> None:
        self.question = question
        self._values: list[object] = []
        keys = [*self._period_key(), *(quoted(name) for name in question.groups)]
        # The values of the select list come before those of the condition, as in the text.
        numbers = self._numbers()
        self.columns = (*question.key_names, *(label for label, _ in numbers))
        expressions = [*keys, *(expression for _, expression in numbers)]
        named = (
            f"{expression} AS {quoted(name)}"
            for expression, name in zip(expressions, self.columns, strict=True)
        )
        places = ", ".join(str(place) for place in range(1, len(keys) + 1))
        group = f" GROUP BY {places}" if keys else ""
        self.sql = f"SELECT {', '.join(named)} FROM {quoted(view)}{self._condition()}{group}"
        self.values = tuple(self._values)

    def ordered(self) -> str:
        """The query in the order in which the answer shows it."""
        keys = len(self.question.key_names)
        if not keys:
            return self.sql
        direction = "ASC" if self.question.ascending else "DESC"
        by_number = f"{keys + 1} {direction} NULLS LAST"
        by_keys = ", ".join(f"{place} NULLS LAST" for place in range(1, keys + 1))
        chronological = self.question.period and not self.question.top
        order = f"{by_keys}, {by_number}" if chronological else f"{by_number}, {by_keys}"
        return f"SELECT * FROM ({self.sql}) ORDER BY {order}"

    def _period_key(self) -> list[str]:
        if not self.question.period:
            return []
        moment = f"CAST({quoted(self.question.period_column)} AS TIMESTAMP)"
        return [_PERIODS[self.question.period].format(moment)]

    def _numbers(self) -> list[tuple[str, str]]:
        """The label and the expression of each number; a series gives one for each value."""
        series = self.question.series
        if not series:
            return [(each.label, _expression(each)) for each in self.question.measures]
        return [
            (f"{measure.label} ({value.value})", self._of_value(measure, value))
            for measure in self.question.measures
            for value in series
        ]

    def _of_value(self, measure: Measure, value: Filter) -> str:
        self._values.append(value.value)
        test = f"CAST({quoted(value.column)} AS VARCHAR) = ?"
        return f"{_expression(measure)} FILTER (WHERE {test})"

    def _condition(self) -> str:
        tests = [
            f"({' OR '.join(self._test(each) for each in choice)})"
            for choice in self.question.conditions
        ]
        if self.question.condition:
            tests.append(f"({self.question.condition}\n)")
        return f" WHERE {' AND '.join(tests)}" if tests else ""

    def _test(self, each: Filter) -> str:
        self._values.append(each.value)
        column = quoted(each.column)
        if each.part:
            return f"{each.part}(CAST({column} AS TIMESTAMP)) {each.operator} ?"
        if isinstance(each.value, str):
            return f"lower(CAST({column} AS VARCHAR)) {each.operator} lower(?)"
        return f"{column} {each.operator} ?"


def aggregate(
    database: Database, view: str, question: Question, *, most: int = MOST_ROWS
) -> tuple[AnswerTable, list[str]]:
    """Run a question; give the table and the findings."""
    query = Query(question, view)
    most = min(question.top or most, most)
    columns, rows = database.select(query.ordered(), query.values, most=most)
    total = _count(database, query)
    table = AnswerTable(
        title=question.title,
        columns=columns,
        cells=tuple(rows),
        total_rows=min(total, question.top or total),
        key_count=len(question.key_names),
    )
    return table, _findings(database, query, table, total)


def rows_of(database: Database, view: str, question: Question) -> int:
    """How many rows of a table the question's conditions leave."""
    bare = question.replace(
        measures=(Measure(aggregate="count"),), groups=(), period="", series=(), top=None
    )
    query = Query(bare, view)
    _, rows = database.select(query.sql, query.values, most=1)
    return int(str(rows[0][0]))


def _expression(measure: Measure) -> str:
    if not measure.column:
        return "count(*)"
    return _FUNCTIONS[measure.aggregate].format(quoted(measure.column))


def _count(database: Database, query: Query) -> int:
    _, rows = database.select(f"SELECT count(*) FROM ({query.sql})", query.values, most=1)
    return int(str(rows[0][0]))


def _findings(database: Database, query: Query, table: AnswerTable, total: int) -> list[str]:
    if not table.cells or table.cells[0] == (None,) * len(table.columns):
        return ["No row fits."]
    if not query.question.key_names:
        return [
            f"{label[0].upper()}{label[1:]}: {shown(value)}."
            for label, value in zip(table.columns, table.cells[0], strict=True)
        ]
    if total == 1:
        return []
    # Where the answer shows a part only, the largest and the smallest are those of the whole.
    of_all = f" of all {total}" if total > len(table.cells) else ""
    findings = [
        _extreme(database, query, "DESC", f"Largest{of_all}"),
        _extreme(database, query, "ASC", f"Smallest{of_all}"),
    ]
    return [*findings, *_change(query.question, table)]


def _extreme(database: Database, query: Query, direction: str, word: str) -> str:
    """The group with the largest or smallest first number, over all groups, shown or not."""
    place = len(query.question.key_names) + 1
    sql = (
        f"SELECT *, sum({quoted(query.columns[place - 1])}) OVER () FROM ({query.sql}) "
        f"ORDER BY {place} {direction} NULLS LAST, 1 LIMIT 1"
    )
    _, rows = database.select(sql, query.values, most=1)
    row = rows[0]
    value, whole = row[place - 1], number(row[-1])
    names = " / ".join(shown(cell) for cell in row[: place - 1])
    if len(query.columns) > place:
        word += f" {query.columns[place - 1]}"
    return f"{word}: {names} with {shown(value)}{_share(query.question, value, whole)}."


def _share(question: Question, value: object, whole: float | None) -> str:
    part = number(value)
    if not question.measures[0].adds_up or question.series or not whole or part is None:
        return ""
    if part < 0 or whole < part:
        return ""
    return f" ({100 * part / whole:.1f} % of {shown(whole)})"


def _change(question: Question, table: AnswerTable) -> list[str]:
    """How the last period stands to the first one."""
    whole = not question.groups and not question.top and table.total_rows <= len(table.cells)
    if not question.period or not whole:
        return []
    first, last = number(table.cells[0][1]), number(table.cells[-1][1])
    if not first or last is None or first < 0:
        return []
    change = 100 * (last - first) / first
    return [f"From {table.cells[0][0]} to {table.cells[-1][0]}: {change:+.1f} %."]
