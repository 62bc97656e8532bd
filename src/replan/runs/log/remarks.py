"""What the outcome and the marks of a run do not show: a fold of its events.

The event of its end has the counts of all calls, which a list of runs reads from there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from replan.runs.log.call_counts import ANSWERED, Calls, calls_of
from replan.runs.log.run_event import RunEvent

if TYPE_CHECKING:
    from replan.runs.log.run_event import RunEvent

ASKED_AGAIN = "asked again"

_Place = tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class Anomalies:
    """How often a run met what it continued in spite of."""

    failed: int = 0  # calls of tools that failed
    refused: int = 0  # calls of tools that a person refused
    unusable: int = 0  # replies of models that could not be used


def remarks_of(events: Iterable[RunEvent], unusable: Collection[int] = ()) -> Anomalies:
    """Count them; `unusable` has the replies."""
    ends = Counter(e.details.get("status") for e in events if e.type == "tool_completed")
    return Anomalies(failed=ends["failed"], refused=ends["rejected"], unusable=len(unusable))


def unusable_replies(events: Iterable[RunEvent]) -> dict[int, str]:
    """What was done instead of using a reply, by the number of the event that ended its call."""
    replies = Replies()
    for event in events:
        replies.follow(event)
    return replies.done


@dataclass
class Replies:
    """The replies of a run while its events are read, one after the other."""

    done: dict[int, str] = field(default_factory=dict[int, str])  # instead of using one
    # The newest reply by its place, and by its step and attempt.
    _replied: dict[_Place, int] = field(default_factory=dict["_Place", int])
    _newest: dict[_Place, int] = field(default_factory=dict["_Place", int])

    def follow(self, event: RunEvent) -> None:
        said: dict[str, Any] = event.details
        # An event of the host's node has no other fields of these.
        place = said.get("node"), said.get("step_id"), said.get("attempt")
        match event.type:
            case "model_invoked":
                # A plan with mistakes may be another node's.
                before = self._replied.get(place) or self._newest.get(place[1:])
                if said.get("is_reprompt") and before is not None:
                    self.done[before] = ASKED_AGAIN
            case "model_completed" if not said.get("error"):
                self._replied[place] = self._newest[place[1:]] = event.seq or 0
            case "reply_parse_failed" if place in self._replied:
                self.done[self._replied[place]] = f"instead: {said.get('fallback')}"
            case _:
                pass


_COUNTED = (*ANSWERED, "model_invoked", "reply_parse_failed", "tool_completed")


@dataclass
class RunCounts:
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
        self._replies.follow(event)
        if event.type in ANSWERED:
            self._calls = _add(self._calls, calls_of([event]))
            self._open.discard(str(event.details.get("call")))
        elif event.type == "model_invoked":
            self._open.add(str(event.details.get("call")))
        elif event.type == "tool_completed":
            self._ends[event.details.get("status")] += 1

    def told(self) -> dict[str, JsonValue]:
        """The counts as they are kept."""
        unusable = len(self._replies.done)
        ends = {"failed": self._ends["failed"], "refused": self._ends["rejected"]}
        calls = asdict(self._calls) | {"unfinished": len(self._open)}
        return {"anomalies": {**ends, "unusable": unusable}, "calls": calls}


def counts_in(events: Sequence[RunEvent]) -> tuple[Anomalies, Calls] | None:
    """Read the counts of a run from its last events; None where no end with counts is there."""
    for at, event in enumerate(events):
        stats: Any = event.details.get("stats")
        if event.type == "task_completed" and stats:
            # A summary of the conversation may follow the end.
            calls = _add(_from_fields(Calls, stats["calls"]), calls_of(events[at + 1 :]))
            return _from_fields(Anomalies, stats["anomalies"]), calls
    return None


def _add(first: Calls, second: Calls) -> Calls:
    names = [each.name for each in fields(Calls)]
    return Calls(**{name: getattr(first, name) + getattr(second, name) for name in names})


def _from_fields(kind: type[Any], kept: Mapping[str, Any]) -> Any:
    return kind(**{each.name: kept[each.name] for each in fields(kind) if each.name in kept})
