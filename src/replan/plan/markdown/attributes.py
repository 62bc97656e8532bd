"""The attributes of a step, and how they are written: `(after 1, 2; priority 2)`."""

from dataclasses import dataclass, fields
from typing import Any

from replan.plan.markdown.encoding import encode_resource
from replan.plan.model import Condition, PlanStep

KNOWN = (
    "after 1, 2; if 2 failed; if 2 completed; optional; priority 2; retries 1; timeout 30s; "
    "writes report.md; @name"
)
"""The attributes that a step can have, as they are written."""

_SINGLE = ("condition", "optional", "priority", "max_retries", "timeout")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """What a text says about a step; `None` where it says nothing."""

    specialists: tuple[str, ...] | None = None
    dependencies: tuple[int, ...] | None = None
    condition: Condition | None = None
    optional: bool | None = None
    priority: int | None = None
    max_retries: int | None = None
    timeout: float | None = None
    writes: tuple[str, ...] | None = None

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) is not None for field in fields(self))

    def __or__(self, other: "Attributes") -> "Attributes":
        """Join two: lists grow; where both have a single value, the first one counts."""
        joined = {
            each.name: _joined(each.name, getattr(self, each.name), getattr(other, each.name))
            for each in fields(self)
        }
        return Attributes(**joined)

    def conflict(self, other: "Attributes") -> str | None:
        """Name an attribute that has different values in the two."""
        for name in _SINGLE:
            mine, yours = getattr(self, name), getattr(other, name)
            if mine is not None and yours is not None and mine != yours:
                return name.removeprefix("max_")
        return None


def write_attributes(step: PlanStep, *, guarded: bool = False) -> str:
    """Write the attributes of a step in their canonical order, without the parentheses."""
    parts: list[str] = []
    if step.dependencies:
        parts.append("after " + ", ".join(str(step_id) for step_id in step.dependencies))
    if step.condition is not None:
        parts.append(f"if {step.condition.step} {step.condition.outcome}")
    if step.optional:
        parts.append("optional")
    if step.priority:
        parts.append(f"priority {step.priority}")
    if step.max_retries is not None:
        parts.append(f"retries {step.max_retries}")
    if step.timeout is not None:
        parts.append(f"timeout {repr(step.timeout).removesuffix('.0')}s")
    if step.writes:
        names = (encode_resource(name, guarded=guarded) for name in step.writes)
        parts.append(f"writes {', '.join(names)}")
    return "; ".join(parts)


def _joined(name: str, one: Any, two: Any) -> Any:
    if one is None or two is None:
        return two if one is None else one
    return one if name in _SINGLE else tuple(dict.fromkeys((*one, *two)))
