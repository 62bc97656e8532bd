"""The marks of data inside prompts: no text between two of them can close or open one."""

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
