"""What the host and steps got of the conversation and of the team's knowledge, in words."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from replan.views.cells import counted, one_line

GIVEN = ("memory_applied", "knowledge_retrieved")
"""The events that report it."""

_NAMED = 3
_LACKING = {"skipped": "left out", "unused": "not used", "failed": "failed"}


def memory_text(details: Mapping[str, Any]) -> str:
    """How much of a conversation a model sees."""
    names = {"summarised": "summarised", "omitted": "left out", "truncated": "cut"}
    lacking = ", ".join(f"{details[name]} {word}" for name, word in names.items())
    return f"sees {counted(details['visible'], 'message')} of the conversation: {lacking}"


def knowledge_text(details: Mapping[str, Any]) -> str:
    """What was found, and how much of it was not used."""
    if details.get("error"):
        return f"is given no knowledge: {one_line(str(details['error']))}"
    found = places(details.get("sources", ())) or "nothing found"
    lacking = [f"{len(details[n])} {word}" for n, word in _LACKING.items() if details.get(n)]
    return f"is given knowledge: {found}{'; ' if lacking else ''}{', '.join(lacking)}"


def lacking_lines(details: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each part of the knowledge that is not given."""
    return (one_line(str(each)) for name in _LACKING for each in details.get(name) or ())


def places(sources: Sequence[Mapping[str, Any]]) -> str:
    """The first sources of some, in one line."""
    names = [
        str(each["source"]) if each.get("line") is None else f"{each['source']}:{each['line']}"
        for each in sources
    ]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return one_line(", ".join(names[:_NAMED])) + more
