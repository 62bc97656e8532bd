"""Write exact numbers as people do."""

from decimal import Decimal, localcontext
from fractions import Fraction

_DIGITS, _LONGEST_EXACT = 12, 40


def written(value: Fraction, unit: str = "") -> str:
    """A number in decimals: all of them where they end, else twelve and the word "rounded"."""
    if value.denominator == 1:
        return f"{value.numerator}{unit}"
    exact = _decimal(value, _LONGEST_EXACT)
    if Fraction(exact) == value:
        return exact + unit
    return f"{_decimal(value, _DIGITS)}{unit} (rounded)"


def _decimal(value: Fraction, digits: int) -> str:
    with localcontext() as context:
        context.prec = digits
        quotient = Decimal(value.numerator) / Decimal(value.denominator)
    return format(quotient.normalize(), "f")
