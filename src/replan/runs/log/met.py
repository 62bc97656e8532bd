"""What the calls of a run came to, counted event by event: a list of runs reads it from the end."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from pydantic import JsonValue

from replan.runs.log.call_counts import ANSWERED, Calls, calls_of
from replan.runs.log.remarks import Remarks, Replies
from replan.runs.log.run_event import RunEvent

_COUNTED = (*ANSWERED, "model_called", "reply_unreadable", "tool_completed")


@dataclass
class Met:
    """The counts so far."""

    _calls: Calls = field(default_factory=Calls)
    _open: set[str] = field(default_factory=set[str])
    _replies: Replies = field(default_factory=Replies)
    _ends: Counter[object] = field(default_factory=Counter[object])

    @staticmethod
    def counts(kind: str) -> bool:
        """Whether events of a type change anything."""
        return kind in _COUNTED

    def follow(self, event: RunEvent) -> None:
        """Count an event."""
        self._replies.follow(event)
        if event.type in ANSWERED:
            self._calls = _added(self._calls, calls_of([event]))
            self._open.discard(str(event.details.get("call")))
        elif event.type == "model_called":
            self._open.add(str(event.details.get("call")))
        elif event.type == "tool_completed":
            self._ends[event.details.get("status")] += 1

    def told(self) -> dict[str, JsonValue]:
        """The counts as they are kept."""
        unusable = len(self._replies.done)
        ends = {"failed": self._ends["failed"], "refused": self._ends["rejected"]}
        calls = asdict(self._calls) | {"unended": len(self._open)}
        return {"remarks": {**ends, "unusable": unusable}, "calls": calls}


def met_in(events: Sequence[RunEvent]) -> tuple[Remarks, Calls] | None:
    """Read the counts of a run from its last events; None where no end with counts is there."""
    for at, event in enumerate(events):
        met: Any = event.details.get("met")
        if event.type == "task_completed" and met:
            # A summary of the conversation may follow the end.
            calls = _added(_read(Calls, met["calls"]), calls_of(events[at + 1 :]))
            return _read(Remarks, met["remarks"]), calls
    return None


def _added(first: Calls, second: Calls) -> Calls:
    names = [each.name for each in fields(Calls)]
    return Calls(**{name: getattr(first, name) + getattr(second, name) for name in names})


def _read(kind: type[Any], kept: Mapping[str, Any]) -> Any:
    return kind(**{each.name: kept[each.name] for each in fields(kind) if each.name in kept})
