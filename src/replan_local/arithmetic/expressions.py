"""Evaluate an expression of numbers, signs and brackets, and of names that others know."""

import re
from collections.abc import Callable
from fractions import Fraction

Lookup = Callable[[str], Fraction]
"""Gives the number behind a name, or raises."""

_LARGEST_POWER, _LARGEST_BASE, _DEEPEST = 256, 10**6, 40
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?|\.\d+)(?![\w.])|(?P<sign>\*\*|[-+*/()])"
    # A name ends before a sign that stands between blanks: "year-end stock - sold".
    r"|(?P<name>[^\W\d_].*?)(?=\s+[-+]\s|\s*(?:[*/()]|$)))"
)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_COIN = r"[$\u20ac\u00a3\u00a5]"
_CURRENCY = re.compile(rf"{_COIN}\s*(?=[\d.])|(?<=\d)\s*(?:{_COIN}|eur|usd)(?!\w)")
_SIGNS = (
    (re.compile(r"\s+plus\s+"), " + "),
    (re.compile(r"\s+minus\s+|[\u2212\u2013]"), " - "),
    (re.compile(r"\s+(?:times|multiplied\s+by)\s+|\u00d7"), " * "),
    (re.compile(r"\s+divided\s+by\s+|\u00f7"), " / "),
    (re.compile(r"\^|\s+to\s+the\s+power\s+of\s+"), " ** "),
)


class NotArithmeticError(ValueError):
    """A text is no arithmetic, or more of it than is computed."""


def prepared(text: str) -> str:
    """A text in small letters, with signs for words and numbers without grouping or currency."""
    text = _THOUSANDS.sub("", _CURRENCY.sub("", text.casefold()))
    for pattern, sign in _SIGNS:
        text = pattern.sub(sign, text)
    return " ".join(text.split())


def evaluate(expression: str, lookup: Lookup) -> Fraction:
    """Compute a prepared expression exactly.

    Raises:
        NotArithmeticError: It cannot be read, or is too large to be computed.
        ZeroDivisionError: It divides by zero.
    """
    return _Expression(expression, lookup).value()


class _Expression:
    """Reads the tokens of an expression from left to right."""

    def __init__(self, text: str, lookup: Lookup) -> None:
        self._tokens = _tokens(text)
        self._lookup = lookup
        self._place = 0
        self._depth = 0

    def value(self) -> Fraction:
        """The value of the whole."""
        value = self._sum()
        if self._place < len(self._tokens):
            raise NotArithmeticError(self._tokens[self._place][1])
        return value

    def _next(self, *signs: str) -> str:
        """Take the next token if it is one of these signs."""
        if self._place < len(self._tokens) and self._tokens[self._place] in [
            ("sign", sign) for sign in signs
        ]:
            self._place += 1
            return self._tokens[self._place - 1][1]
        return ""

    def _sum(self) -> Fraction:
        value = self._product()
        while sign := self._next("+", "-"):
            other = self._product()
            value = value + other if sign == "+" else value - other
        return value

    def _product(self) -> Fraction:
        value = self._signed()
        while sign := self._next("*", "/"):
            other = self._signed()
            value = value * other if sign == "*" else value / other
        return value

    def _signed(self) -> Fraction:
        negative = False
        while sign := self._next("+", "-"):
            negative ^= sign == "-"
        value = self._power()
        return -value if negative else value

    def _power(self) -> Fraction:
        base = self._single()
        return _power(base, self._signed()) if self._deeper("**") else base

    def _single(self) -> Fraction:
        if self._deeper("("):
            value = self._sum()
            if not self._next(")"):
                raise NotArithmeticError("(")
            return value
        if self._place >= len(self._tokens):
            raise NotArithmeticError("")
        kind, text = self._tokens[self._place]
        self._place += 1
        if kind == "sign":
            raise NotArithmeticError(text)
        return Fraction(text) if kind == "number" else self._lookup(text)

    def _deeper(self, sign: str) -> bool:
        if not self._next(sign):
            return False
        self._depth += 1
        if self._depth > _DEEPEST:
            raise NotArithmeticError(sign)
        return True


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    place = 0
    while place < len(text.rstrip()):
        found = _TOKEN.match(text, place)
        if found is None or found.lastgroup is None:
            raise NotArithmeticError(text[place:])
        tokens.append((found.lastgroup, found[found.lastgroup]))
        place = found.end()
    return tokens


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    # Bounded, so that a short request cannot keep the process busy for hours.
    small = abs(base) <= _LARGEST_BASE and base.denominator <= _LARGEST_BASE
    if exponent.denominator != 1 or abs(exponent) > _LARGEST_POWER or not small:
        raise NotArithmeticError(str(exponent))
    return base ** int(exponent)
