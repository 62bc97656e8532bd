"""Signs in names that nobody sees, or that make a name show as something else than it is."""

import unicodedata

_JOINERS = "\u200c\u200d"
"""What joins letters and signs, and hides nothing."""


def is_invisible(sign: str) -> bool:
    """Whether a sign is a control, a line break, a mark of direction or the like."""
    return unicodedata.category(sign) in ("Cc", "Cf", "Zl", "Zp") and sign not in _JOINERS


def visible(name: str) -> str:
    """Write a name with its invisible signs and backslashes as Python writes them."""
    if name.isascii() and name.isprintable() and "\\" not in name:
        return name
    return "".join(
        sign.encode("unicode_escape").decode() if is_invisible(sign) or sign == "\\" else sign
        for sign in name
    )
