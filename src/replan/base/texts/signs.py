"""Signs that mark data in prompts, that are not seen, or that make a text look like another one."""

import re

TAGS = (
    "conversation",
    "memory",
    "request",
    "team",
    "plan",
    "step",
    "result",
    "feedback",
    "knowledge",
    "facts",
    "parameters",
    "missing",
    "said",
    "call",
)
"""What is marked."""

MARK = re.compile(rf"<(?=/?(?:{'|'.join(TAGS)})\b)", re.IGNORECASE)
"""How a mark begins, of whatever kind."""

DISARMED = "<\u200b"
"""What takes the place of its first character in a text of others."""


# What models and files say may hold signs that steer a terminal or turn its direction of writing.
_STEERING = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
# Others are not seen: a name or an address that holds them only looks like what it is read as. The
# two joiners U+200C and U+200D stay, since words of some scripts are written with them.
_UNSEEN = (
    r"\u00ad\u115f\u1160\u180e\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
)
_HARMFUL = re.compile(f"[{_STEERING}{_UNSEEN}]")
_HIDDEN = re.compile(rf"[{_STEERING}{_UNSEEN}\t\n]")
# Half a character in the name of a file stands for a byte, which is written elsewhere.
_ESCAPED = re.compile(rf"(?![\ud800-\udfff])[{_STEERING}{_UNSEEN}\t\n\\]")


def harmless(text: str) -> str:
    """Return a text with U+FFFD for each sign that steers a terminal or is not seen.

    Line ends and tabs stay.
    """
    return _HARMFUL.sub("\ufffd", text.replace("\r", ""))


def one_line(text: str) -> str:
    """Return a text in one line, harmless."""
    return harmless(" ".join(text.split()))


def is_hidden(sign: str) -> bool:
    """Whether a sign of a name is not seen, breaks its line, or turns its direction."""
    return _HIDDEN.match(sign) is not None


def visible(name: str) -> str:
    """Return a name with its hidden signs and its backslashes as Python writes them."""
    return _ESCAPED.sub(lambda found: found[0].encode("unicode_escape").decode(), name)
