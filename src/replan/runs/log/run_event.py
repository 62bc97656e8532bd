"""A stored event of a run; reading one needs no framework."""

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import Any

from pydantic import Field, JsonValue

from replan.values import Value


class RunEvent(Value):
    """Something that happened in a run, the same live and when it is read later.

    Whole plans, results and answers are in the state (`look`); `details` has what is needed to
    follow a run.

    Attributes:
        run_id: The run.
        seq: Its number in the run, from 1, without a gap; None for a piece of text, which is
            reported once and not kept.
        at: When it was recorded; None for a piece of text.
        type: What happened, such as `specialist_completed`.
        round: The round; 0 before there is a plan.
        details: The fields of the event.
    """

    run_id: str
    seq: int | None = None
    at: datetime | None = None
    type: str
    round: int = 0
    details: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def call_key(self) -> tuple[str, ...]:
        """What the events of one call of a model or a tool have in common."""
        return tuple(str(self.details.get(n)) for n in ("node", "step_id", "attempt", "call"))

    @cached_property
    def written(self) -> str:
        """The event as JSON; written once, however many follow the run."""
        return self.model_dump_json()


def event_in(run_id: str, seq: int, kept: Mapping[str, Any]) -> RunEvent:
    fields = dict(kept)
    own = {name: fields.pop(name) for name in ("type", "at", "round") if name in fields}
    return RunEvent.model_validate(
        {"run_id": run_id, "seq": seq, "type": "", "details": fields, **own}
    )
