"""Exact arithmetic for the offline model: a sum typed as a request gets its number."""

import ast
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, localcontext
from fractions import Fraction

_LONGEST, _LARGEST_POWER, _LARGEST_BASE, _DIGITS = 200, 256, 10**6, 12
_ASKING = re.compile(
    r"^\s*(?:please\s+)?(?:what\s+is|what's|how\s+much\s+is|calculate|compute|evaluate)?\s*"
    r"|\s*=?\s*[?.!]*\s*$",
    re.IGNORECASE,
)
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*(?:%|percent)\s+of\s+", re.IGNORECASE)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_ARITHMETIC = re.compile(r"[\d\s.+\-*/()]*\d\s*(?:[-+/]|\*{1,2})[\d\s.+\-*/()]+")
_WORDS = (
    (r"\bplus\b", "+"),
    (r"\bminus\b|[\u2212\u2013]", "-"),
    (r"\btimes\b|\bmultiplied\s+by\b|\u00d7", "*"),
    (r"\bdivided\s+by\b|\u00f7", "/"),
    (r"\^|\bto\s+the\s+power\s+of\b", "**"),
)
_OPERATIONS: Mapping[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: Fraction.__add__,
    ast.Sub: Fraction.__sub__,
    ast.Mult: Fraction.__mul__,
    ast.Div: Fraction.__truediv__,
}


def arithmetic_answer(request: str) -> str | None:
    """Answer a request that is nothing but arithmetic; none for every other request."""
    expression = _expression(request)
    if expression is None:
        return None
    try:
        value = _number(_value(ast.parse(expression, mode="eval").body))
    except ZeroDivisionError:
        return f"{_shown(expression)} is not defined: it divides by zero."
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return f"{_shown(expression)} = {value}"


def _expression(request: str) -> str | None:
    if len(request) > _LONGEST:
        return None
    text = _ASKING.sub("", request.casefold())
    text = _THOUSANDS.sub("", _PERCENT.sub(r"\1 / 100 * ", text))
    for pattern, sign in _WORDS:
        text = re.sub(pattern, sign, text)
    return text.strip() if _ARITHMETIC.fullmatch(text) else None


def _shown(expression: str) -> str:
    return " ".join(expression.split()).replace("**", "^").replace("*", "\u00d7")


def _value(node: ast.expr) -> Fraction:
    match node:
        case ast.Constant(value=int() | float() as number):
            return Fraction(str(number))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_value(left), _value(right))
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATIONS:
            return _OPERATIONS[type(operator)](_value(left), _value(right))
        case _:
            message = "not arithmetic"
            raise ValueError(message)


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    # Bounded, so that a short request cannot keep the process busy for hours.
    small = abs(base) <= _LARGEST_BASE and base.denominator <= _LARGEST_BASE
    if exponent.denominator != 1 or abs(exponent) > _LARGEST_POWER or not small:
        message = "this power is not computed"
        raise ValueError(message)
    return base ** int(exponent)


def _number(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    with localcontext() as context:
        context.prec = _DIGITS
        quotient = Decimal(value.numerator) / Decimal(value.denominator)
    text = format(quotient.normalize(), "f")
    return text if Fraction(text) == value else f"{text} (rounded)"
