"""Compute an expression exactly: numbers, signs, and figures of earlier steps."""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from typing import Any

from replan_local.answer_table import number_in, result_of, table_of
from replan_local.figures import unquoted
from replan_local.grammar import meaning, tree_of
from replan_local.refusals import CannotAnswerError, one_of

_LARGEST_POWER, _LARGEST_BASE = 256, 10**6
_DIGITS, _LONGEST_EXACT = 12, 40
_RESULT = re.compile(r"^[^\n]{1,1000} = (-?\d+(?:\.\d+)?)(?: \(rounded\))?$", re.MULTILINE)


def calculated(expression: str, inputs: Mapping[int, str]) -> str:
    """Compute; the result says the expression, too."""
    text = " ".join(expression.split())
    tree = tree_of(text, "expression")
    try:
        value = meaning(tree, {**_MEANINGS, "figure": partial(_figure, inputs)})
    except ZeroDivisionError:
        raise CannotAnswerError(f"'{text}' divides by zero.") from None
    return f"{text} = {written(value)}"


def written(value: Fraction) -> str:
    """A number in decimals: all of them where they end, else twelve and the word "rounded"."""
    if value.denominator == 1:
        return str(value.numerator)
    exact = _decimal(value, _LONGEST_EXACT)
    return exact if Fraction(exact) == value else f"{_decimal(value, _DIGITS)} (rounded)"


def _decimal(value: Fraction, digits: int) -> str:
    with localcontext(prec=digits):
        return format((Decimal(value.numerator) / Decimal(value.denominator)).normalize(), "f")


def _power(base: Fraction, power: Fraction) -> Fraction:
    # Bounded, so that a short expression cannot keep the process busy for hours.
    small = abs(base) <= _LARGEST_BASE and base.denominator <= _LARGEST_BASE
    if power.denominator != 1 or abs(power) > _LARGEST_POWER or not small:
        message = "Of powers, whole ones up to 256 are computed, of numbers up to a million."
        raise CannotAnswerError(message)
    return base ** int(power)


def _figure(inputs: Mapping[int, str], step: int, column: str | None, row: str | None) -> Fraction:
    """The figure of `step 1`, `step 1["COLUMN"]` or `step 1["COLUMN"]["ROW"]`."""
    if not column and (results := _RESULT.findall(result_of(step, inputs))):
        return Fraction(results[-1])
    table = table_of(step, inputs)
    name = one_of(column, table.figures, f"column of figures in step {step}")
    rows = table.figures_by_label()
    figure = number_in(rows[one_of(row, [*rows], f"row in step {step}")][name])
    if figure is None:
        raise CannotAnswerError(f"Step {step} has no figure there.")
    return figure


_MEANINGS: Mapping[str, Callable[..., Any]] = {
    "A_NUMBER": Fraction,
    "A_WHOLE_NUMBER": int,
    "A_NAME_IN_QUOTES": unquoted,
    "add": Fraction.__add__,
    "sub": Fraction.__sub__,
    "mul": Fraction.__mul__,
    "truediv": Fraction.__truediv__,
    "neg": Fraction.__neg__,
    "hundredths": Fraction(1, 100).__mul__,
    "power": _power,
}
