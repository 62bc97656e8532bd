"""What the host and steps got of the conversation and of the team's knowledge, in words."""

from collections.abc import Iterator, Sequence

from replan.events.types import KnowledgeRetrieved, MemoryApplied
from replan.state.knowledge import Source
from replan.views.cells import counted, one_line

Given = MemoryApplied | KnowledgeRetrieved
"""The events that report it."""

_NAMED = 3


def memory_text(event: MemoryApplied) -> str:
    """How much of a conversation a model sees."""
    lacking = {"summarised": event.summarised, "left out": event.omitted, "cut": event.truncated}
    numbers = ", ".join(f"{number} {word}" for word, number in lacking.items())
    return f"sees {counted(event.visible, 'message')} of the conversation: {numbers}"


def knowledge_text(event: KnowledgeRetrieved) -> str:
    """What was found, and how much of it was not used."""
    if event.error:
        return f"is given no knowledge: {one_line(event.error)}"
    found = places(event.sources) or "nothing found"
    parts = {"left out": event.skipped, "not used": event.unused, "failed": event.failed}
    lacking = [f"{len(each)} {word}" for word, each in parts.items() if each]
    return f"is given knowledge: {found}{'; ' if lacking else ''}{', '.join(lacking)}"


def lacking_lines(event: KnowledgeRetrieved) -> Iterator[str]:
    """A sentence for each part of the knowledge that is not given."""
    return map(one_line, (*event.skipped, *event.unused, *event.failed))


def places(sources: Sequence[Source]) -> str:
    """The first sources of some, in one line."""
    names = [each.place for each in sources]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return one_line(", ".join(names[:_NAMED])) + more
