"""Convert messages of callers into messages of a job."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from replan.jobs.extraction.port import JobMessage

Said = str | Mapping[str, Any] | JobMessage | object
"""A text of the user, a mapping with role and content, or a message of LangChain."""

_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant"}
_LONGEST = 100_000


def messages_of(given: Sequence[Said]) -> tuple[JobMessage, ...]:
    """Read messages; those of neither the user nor the assistant are left out."""
    read = (_message(each) for each in ([given] if isinstance(given, str) else given))
    return tuple(each for each in read if each.role != "system")


def _message(given: object) -> JobMessage:
    if isinstance(given, JobMessage):
        return given
    if isinstance(given, str):
        return JobMessage(role="user", content=given[:_LONGEST])
    if isinstance(given, Mapping):
        fields = cast("Mapping[str, object]", given)
        role, content = fields.get("role"), fields.get("content")
    else:
        role = getattr(given, "role", None) or getattr(given, "type", None)
        content = getattr(given, "text", None) or getattr(given, "content", None)
    kind = cast("Any", _ROLES.get(str(role), "system"))
    return JobMessage(role=kind, content=_text(content)[:_LONGEST])


def _text(content: object) -> str:
    if isinstance(content, str):
        return str(content)
    blocks = cast("Sequence[Any]", content) if isinstance(content, list | tuple) else ()
    fields = [cast("dict[str, object]", each) for each in blocks if isinstance(each, dict)]
    texts = [each.get("text") for each in fields]
    return "\n".join(text for text in texts if isinstance(text, str))
