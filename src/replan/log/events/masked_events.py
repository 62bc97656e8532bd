"""Events without the secret values that this process knows of.

Documents, results and answers are reported byte for byte, and so are their pieces; that one of them
holds a secret is a warning (`replan.log.events.warnings`).
"""

from collections.abc import Mapping
from typing import Any, cast

from replan.base.secrets.masking import KNOWN
from replan.base.values import Value
from replan.log.events.types import (
    AnswerToken,
    BaseEvent,
    PlanCreated,
    PlanUpdated,
    SpecialistToken,
)
from replan.plan.model import TaskPlan

_WHOLE = (AnswerToken, SpecialistToken, PlanCreated, PlanUpdated)
# What is a document or an answer, what a question is answered by, and what holds no texts.
_KEPT = frozenset({"key", "thought", "approve", "draft", "changes", "revised_plan", "usage"})


def without_known_secrets(kind: type[BaseEvent], fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of an event without known secret values."""
    if not KNOWN.forms or issubclass(kind, _WHOLE):
        return fields
    return {name: _masked(value) for name, value in fields.items()}


def _masked(value: Any) -> Any:
    """Return a value without them; the very same one if it holds none."""
    if isinstance(value, str):
        return KNOWN.masked(value)
    if isinstance(value, Value):
        return value if isinstance(value, TaskPlan) else _masked_value(value)
    if isinstance(value, tuple):
        parts = tuple(_masked(item) for item in cast("tuple[Any, ...]", value))
        return parts if parts != value else cast("Any", value)
    if isinstance(value, list):
        return [_masked(part) for part in cast("list[Any]", value)]
    if isinstance(value, dict):
        fields = cast("dict[Any, Any]", value)
        masked = {name: _masked(value) for name, value in fields.items()}
        return masked if masked != fields else fields
    return value


def _masked_value(value: Value) -> Value:
    changes = dict[str, Any]()
    for name, before in value.__dict__.items():
        if name not in _KEPT and (after := _masked(before)) is not before:
            changes[name] = after
    return value.replace(**changes) if changes else value
