"""Compute an expression exactly: numbers, signs, functions, and figures of earlier steps.

Python's own parser reads it; nothing of it is run.
"""

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from statistics import median
from typing import Any

from replan_local.answer_table import AnswerTable, number, result_of, tables_in
from replan_local.refusals import CannotAnswerError, did_you_mean

LONGEST = 500
"""Characters of an expression."""

_LARGEST_POWER, _LARGEST_BASE = 256, 10**6
_DIGITS, _LONGEST_EXACT = 12, 40
_STEP = re.compile(r"\bstep\s*(\d{1,9})\b")
_PERCENT_OF = re.compile(r"%\s*of\b")
_QUOTED = re.compile(r"(\"[^\"\\]*\"|'[^'\\]*')")
# What Python would read as something else: exponents, other bases, escapes.
_FOREIGN = re.compile(r"\d[^\W\d]|\\|\*\*|//|\d_|[\"']")
_RESULT = re.compile(r"^[^\n]{1,1000} = (-?\d+(?:\.\d+)?)(?: \(rounded\))?$", re.MULTILINE)
_SIGNS: Mapping[type, Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: Fraction.__add__,
    ast.Sub: Fraction.__sub__,
    ast.Mult: Fraction.__mul__,
    ast.Div: Fraction.__truediv__,
}
_FUNCTIONS: Mapping[str, Callable[[Sequence[Fraction]], Fraction]] = {
    "sum": lambda numbers: sum(numbers, Fraction(0)),
    "average": lambda numbers: sum(numbers, Fraction(0)) / len(numbers),
    "median": median,
    "min": min,
    "max": max,
}


def calculated(expression: str, inputs: Mapping[int, str]) -> str:
    text = " ".join(expression.split())
    try:
        return f"{text} = {written(_Expression(text, inputs).value())}"
    except ZeroDivisionError:
        raise CannotAnswerError(f"'{text}' divides by zero.") from None


def steps_in(expression: str) -> tuple[int, ...]:
    outside = _QUOTED.sub(" ", expression)
    return tuple(dict.fromkeys(int(step) for step in _STEP.findall(outside)))


def written(value: Fraction) -> str:
    """A number in decimals: all of them where they end, else twelve and the word "rounded"."""
    if value.denominator == 1:
        return str(value.numerator)
    exact = _decimal(value, _LONGEST_EXACT)
    return exact if Fraction(exact) == value else f"{_decimal(value, _DIGITS)} (rounded)"


def _decimal(value: Fraction, digits: int) -> str:
    with localcontext() as context:
        context.prec = digits
        return format((Decimal(value.numerator) / Decimal(value.denominator)).normalize(), "f")


class _Expression:
    """An expression as Python's parser reads it."""

    def __init__(self, text: str, inputs: Mapping[int, str]) -> None:
        if len(text) > LONGEST:
            message = f"The expression has {len(text)} characters; at most {LONGEST} are read."
            raise CannotAnswerError(message)
        self._text = text
        self._inputs = inputs
        parts = _QUOTED.split(text)
        if any(_FOREIGN.search(part) for part in parts[::2]):
            raise self._refusal("")
        # `step 3` is a name to Python, and `5 % of x` a product.
        for at in range(0, len(parts), 2):
            named = _STEP.sub(r"step\1", parts[at])
            parts[at] = _PERCENT_OF.sub("/ 100 *", named).replace("^", "**")
        self._source = "".join(parts).strip()

    def value(self) -> Fraction:
        try:
            tree = ast.parse(self._source, mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            raise self._refusal("") from None
        return self._of(tree)

    def _of(self, node: ast.expr) -> Fraction:
        match node:
            case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
                return self._number(node)
            case ast.UnaryOp(op=ast.USub()):
                return -self._of(node.operand)
            case ast.BinOp(op=ast.Pow()):
                return self._raised(self._of(node.left), self._of(node.right))
            case ast.BinOp() if type(node.op) in _SIGNS:
                return _SIGNS[type(node.op)](self._of(node.left), self._of(node.right))
            case ast.Call(func=ast.Name(id=name), keywords=[]) if name in _FUNCTIONS and node.args:
                return _FUNCTIONS[name]([each for given in node.args for each in self._all(given)])
            case ast.Name() | ast.Subscript():
                return self._one(node)
            case _:
                raise self._refusal(ast.unparse(node))

    def _all(self, node: ast.expr) -> Sequence[Fraction]:
        """All figures of a column, or the one value of anything else."""
        is_figures = isinstance(node, ast.Name | ast.Subscript)
        return self._figures(node) if is_figures else [self._of(node)]

    def _one(self, node: ast.Name | ast.Subscript) -> Fraction:
        found = self._figures(node)
        if len(found) == 1:
            return found[0]
        raise CannotAnswerError(
            f"'{self._text}' needs one figure where a step has {len(found)}. Name its row, as in "
            'step 1["total cost"]["Berlin"], or take their sum, average, median, min or max.'
        )

    def _figures(self, node: ast.expr) -> Sequence[Fraction]:
        """The figures of `step 1`, `step 1["COLUMN"]` or `step 1["COLUMN"]["ROW"]`."""
        names: list[str] = []
        inner: Any = node
        while isinstance(inner, ast.Subscript) and isinstance(inner.slice, ast.Constant):
            names.insert(0, str(inner.slice.value))
            inner = inner.value
        found = _STEP.fullmatch(inner.id) if isinstance(inner, ast.Name) else None
        if found is None or len(names) > 2:  # noqa: PLR2004 - a column and a row
            raise self._refusal(ast.unparse(node))
        step = int(found[1])
        text = result_of(step, self._inputs)
        if not names and (results := _RESULT.findall(text)):
            return [Fraction(results[-1])]
        return _cells(tables_in(text, ""), f"Step {step}", *names)

    def _number(self, node: ast.Constant) -> Fraction:
        # As it is written: a float of Python would be a little off.
        return Fraction(ast.get_source_segment(self._source, node) or "")

    def _raised(self, base: Fraction, power: Fraction) -> Fraction:
        # Bounded, so that a short expression cannot keep the process busy for hours.
        small = abs(base) <= _LARGEST_BASE and base.denominator <= _LARGEST_BASE
        if power.denominator != 1 or abs(power) > _LARGEST_POWER or not small:
            message = f"'{self._text}' has a power that is not computed: whole ones up to 256 are."
            raise CannotAnswerError(message)
        return base ** int(power)

    def _refusal(self, part: str) -> CannotAnswerError:
        what = f": '{part}' is not allowed there" if part else ""
        hint = did_you_mean(part.partition("(")[0], _FUNCTIONS) if part else ""
        return CannotAnswerError(f"'{self._text}' is not an expression{what}.{hint}")


def _cells(
    tables: Sequence[AnswerTable], step: str, column: str = "", row: str = ""
) -> Sequence[Fraction]:
    found = [(table, name) for table in tables for name in table.figure_columns()]
    names = [name for _, name in found]
    fitting = [each for each in found if each[1].casefold() == column.casefold()] or (
        found if not column else []
    )
    if len(fitting) != 1:
        hint = did_you_mean(column, names)
        what = f"figures '{column}'" if column else "single result"
        there = f"its figures are: {', '.join(names)}" if names else "it has no figures"
        raise CannotAnswerError(f"{step} has no {what}; {there}.{hint}")
    ((table, name),) = fitting
    if table.is_cut:
        message = f"{step} shows only a part of its rows; ask there for what you need of them."
        raise CannotAnswerError(message)
    at = table.columns.index(name)
    rows = [each for each in table.cells if not row or row.casefold() in _names(table, each)]
    numbers = [value for each in rows if (value := number(each[at])) is not None]
    if not numbers or (row and len(rows) != 1):
        known = [name for each in table.cells for name in _names(table, each)[-1:]]
        which = f"no one figure '{name}' in the row '{row}'" if row else f"no figure '{name}'"
        raise CannotAnswerError(f"{step} has {which}.{did_you_mean(row, known)}")
    return [Fraction(str(each)) for each in numbers]


def _names(table: AnswerTable, row: Sequence[object]) -> Sequence[str]:
    """What a row is called: by each of its keys, and by all of them."""
    keys = [str(row[at]).casefold() for at in table.key_places()]
    return [*keys, " ".join(keys)]
