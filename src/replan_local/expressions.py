"""Compute an expression exactly: numbers, signs, functions, and figures of earlier steps."""

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from statistics import mean, median
from typing import Any

from replan_local.answer_table import result_of, table_of
from replan_local.figures import unquoted
from replan_local.grammar import meaning, tree_of
from replan_local.refusals import CannotAnswerError, one_of

LONGEST = 500
"""Characters of an expression."""

_LARGEST_POWER, _LARGEST_BASE = 256, 10**6
_DIGITS, _LONGEST_EXACT = 12, 40
_RESULT = re.compile(r"^[^\n]{1,1000} = (-?\d+(?:\.\d+)?)(?: \(rounded\))?$", re.MULTILINE)
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "sum": sum,
    "average": mean,
    "median": median,
    "min": min,
    "max": max,
}


def calculated(expression: str, inputs: Mapping[int, str]) -> str:
    """Compute; the result says the expression, too."""
    text = " ".join(expression.split())
    if len(text) > LONGEST:
        message = f"The expression has {len(text)} characters; at most {LONGEST} are read."
        raise CannotAnswerError(message)
    tree = tree_of(text, "expression")
    try:
        value = meaning(tree, _meanings(inputs))
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
    with localcontext() as context:
        context.prec = digits
        return format((Decimal(value.numerator) / Decimal(value.denominator)).normalize(), "f")


def _meanings(inputs: Mapping[int, str]) -> Mapping[str, Callable[..., Any]]:
    """What each part of an expression means, with the results of earlier steps."""
    return {
        "A_NUMBER": str,
        "A_WHOLE_NUMBER": int,
        "A_NAME_IN_QUOTES": unquoted,
        "number": Fraction,
        "add": Fraction.__add__,
        "sub": Fraction.__sub__,
        "mul": Fraction.__mul__,
        "truediv": Fraction.__truediv__,
        "neg": Fraction.__neg__,
        "percent": _percent,
        "power": _power,
        "function": _function,
        "figure": partial(_figures, inputs),
        "all": list,
        "one": _one,
    }


def _percent(part: Fraction, whole: Fraction) -> Fraction:
    return part / 100 * whole


def _function(name: str, *arguments: Fraction | Sequence[Fraction]) -> Fraction:
    """Compute of several; an argument is a number, or all figures of a column."""
    parts = ([argument] if isinstance(argument, Fraction) else argument for argument in arguments)
    return _FUNCTIONS[name]([number for part in parts for number in part])


def _power(base: Fraction, power: Fraction) -> Fraction:
    # Bounded, so that a short expression cannot keep the process busy for hours.
    small = abs(base) <= _LARGEST_BASE and base.denominator <= _LARGEST_BASE
    if power.denominator != 1 or abs(power) > _LARGEST_POWER or not small:
        message = "Of powers, whole ones up to 256 are computed, of numbers up to a million."
        raise CannotAnswerError(message)
    return base ** int(power)


def _one(figures: Sequence[Fraction]) -> Fraction:
    if len(figures) == 1:
        return figures[0]
    raise CannotAnswerError(
        f"One figure is needed where a step has {len(figures)}. Name its row, as in "
        'step 1["total cost"]["Berlin"], or take their sum, average, median, min or max.'
    )


def _figures(
    inputs: Mapping[int, str], step: int, column: str | None, row: str | None
) -> Sequence[Fraction]:
    """The figures of `step 1`, `step 1["COLUMN"]` or `step 1["COLUMN"]["ROW"]`."""
    if not column and (results := _RESULT.findall(result_of(step, inputs))):
        return [Fraction(results[-1])]
    table = table_of(step, inputs)
    names = table.figures()
    # Where there is one column of figures, it needs no name.
    only = names[0] if len(names) == 1 else ""
    values = table.values(one_of(column or only, names, f"column of figures in step {step}"))
    if row:
        labels = table.labels()
        values = [values[labels.index(one_of(row, labels, f"row in step {step}"))]]
    figures = [Fraction(str(value)) for value in values if value is not None]
    if not figures:
        raise CannotAnswerError(f"Step {step} has no figure there.")
    return figures
