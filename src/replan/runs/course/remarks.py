"""Remarks about a run that its outcome and marks do not show: a fold of its events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from replan.runs.log.run_event import RunEvent

ASKED_AGAIN = "asked again"


@dataclass(frozen=True, kw_only=True)
class Remarks:
    """How often a run met what it continued in spite of.

    Attributes:
        failed: Calls of tools that failed.
        refused: Calls of tools that a person refused.
        unusable: Replies of models that could not be used.
    """

    failed: int = 0
    refused: int = 0
    unusable: int = 0


def remarks_of(events: Iterable[RunEvent], unusable: Collection[int] = ()) -> Remarks:
    """Count them; `unusable` has the replies."""
    ends = Counter(e.details.get("status") for e in events if e.type == "tool_completed")
    return Remarks(failed=ends["failed"], refused=ends["rejected"], unusable=len(unusable))


def unusable_replies(events: Iterable[RunEvent]) -> dict[int, str]:
    """What was done instead of using a reply, by the number of the event that ended its call.

    That a model was asked again no event tells: its next prompt is the one before, the reply, and
    what is wrong with it.
    """
    done = dict[int, str]()
    sent, replied = dict[tuple[Any, ...], list[Any]](), dict[tuple[Any, ...], int]()
    for event in events:
        said: dict[str, Any] = event.details
        # An event of the host's node has no other fields of these.
        place = said.get("node"), said.get("step_id"), said.get("attempt")
        match event.type:
            case "model_called":
                prompt: list[Any] = said.get("prompt") or []
                if place in replied and _extends(sent.get(place, []), prompt):
                    done[replied[place]] = ASKED_AGAIN
                sent[place] = prompt
            case "model_answered" if not said.get("error"):
                replied[place] = event.seq or 0
            case "reply_unreadable" if place in replied:
                done[replied[place]] = f"instead: {said.get('fallback')}"
            case _:
                pass
    return done


def _extends(before: Sequence[Any], prompt: Sequence[Any]) -> bool:
    added = [each.get("role") for each in prompt[len(before) :]]
    return bool(before) and added == ["ai", "human"] and [*prompt[: len(before)]] == [*before]
