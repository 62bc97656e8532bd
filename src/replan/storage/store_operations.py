"""LangGraph's operations on a store: what is refused, and which items and namespaces they mean."""

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
    validate_op_namespace,
)

from replan.base.errors import UsageError
from replan.base.texts.storable import DEEPEST, unstorable

LONGEST = 1_000
"""Bytes of a namespace and of a key: PostgreSQL has room for little more in an index."""

Namespace = tuple[str, ...]


def checked(op: Op) -> Op:
    """Return an operation that the store can do."""
    validate_op_namespace(op)
    if isinstance(op, GetOp | PutOp):
        _check_names(key=str(op.key), namespace=".".join(op.namespace))
    if isinstance(op, PutOp):
        return _checked_put(op)
    if isinstance(op, SearchOp | ListNamespacesOp):
        for name, number in (("limit", op.limit), ("offset", op.offset)):
            if number < 0:
                raise UsageError(f"{name}: It is {number}. Give 0 or more.")
    if isinstance(op, SearchOp):
        _check_names(namespace=".".join(op.namespace_prefix))
        for wanted in (op.filter or {}).values():
            _check_operators(wanted)
    return op


def has(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Whether a value passes the filter of a search."""
    return all(_fits_filter(value.get(name), each) for name, each in (wanted or {}).items())


def listed(op: ListNamespacesOp, namespaces: Iterable[Namespace]) -> list[Namespace]:
    """The namespaces that an operation asks for, in their order."""
    conditions = op.match_conditions or ()
    matching = (
        namespace for namespace in namespaces if all(_matches(one, namespace) for one in conditions)
    )
    cut = sorted(
        {namespace if op.max_depth is None else namespace[: op.max_depth] for namespace in matching}
    )
    return cut[op.offset : op.offset + op.limit]


def _checked_put(op: PutOp) -> PutOp:
    if op.ttl is not None:
        raise NotImplementedError("This store keeps items until they are deleted: leave ttl out.")
    if not op.namespace:
        raise InvalidNamespaceError("Namespace cannot be empty.")
    key = str(op.key)
    is_list = isinstance(cast("object", op.index), list)
    if not (op.index is None or op.index is False or (is_list and _are_texts(op.index))):
        raise UsageError(
            "index: Give False, or a list of fields such as 'text' or 'parts[*].text'."
        )
    if op.value is None:
        return op._replace(key=key)
    value = dict(op.value)
    problem = _json_problem(value, "value")
    if problem:
        where = ".".join(op.namespace)
        raise UsageError(f"The item {key!r} of {where} cannot be kept: {problem}")
    return op._replace(key=key, value=value)


def _check_names(**names: str) -> None:
    for what, text in names.items():
        problem = unstorable(text)
        if not problem and len(text.encode()) > LONGEST:
            problem = f"It has more than {LONGEST:,} bytes. Give a shorter one."
        if problem:
            raise UsageError(f"The {what} of an item: {problem}")


def _json_problem(value: object, path: str, depth: int = 0) -> str:
    """Describe which part of a value is not JSON that every store keeps; empty if none is."""
    if not isinstance(value, dict | list):
        problem = _leaf_problem(value)
    elif depth == DEEPEST:
        problem = f"It is nested deeper than {DEEPEST} levels."
    else:
        parts = cast("dict[object, object] | list[object]", value)
        return next(filter(None, _part_problems(parts, path, depth + 1)), "")
    return problem and f"{path}: {problem}"


def _leaf_problem(value: object) -> str:
    if value is None or isinstance(value, str | int):
        return unstorable(value)
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"It is {value}. Give a finite number."
    kind = type(value).__name__
    return f"It is of the type {kind}, which JSON does not have. Write it as text."


def _part_problems(
    value: dict[object, object] | list[object], path: str, depth: int
) -> Iterator[str]:
    if isinstance(value, list):
        for at, item in enumerate(value):
            yield _json_problem(item, f"{path}[{at}]", depth)
        return
    for key, part in value.items():
        if not isinstance(key, str):
            yield f"{path}: The key {key!r} is not text. Write it as text."
        elif problem := unstorable(key):
            yield f"{path}: One of its keys cannot be kept. {problem}"
        yield _json_problem(part, f"{path}.{key}", depth)


def _are_texts(parts: Iterable[object]) -> bool:
    return all(isinstance(part, str) for part in parts)


def _fits_filter(value: object, wanted: object) -> bool:
    if isinstance(wanted, dict):
        parts = cast("dict[str, object]", wanted)
        if _has_operators(parts):
            return all(_compare(value, name, part) for name, part in parts.items())
        return isinstance(value, dict) and has(cast("dict[str, object]", value), parts)
    if isinstance(wanted, list | tuple):
        stored, all_wanted = cast("Any", value), cast("Sequence[object]", wanted)
        return (
            isinstance(value, list)
            and len(stored) == len(all_wanted)
            and all(map(_fits_filter, stored, all_wanted))
        )
    return value == wanted


def _compare(value: object, name: str, other: object) -> bool:
    compare = _OPERATORS[name]
    if name in ("$eq", "$ne"):
        return compare(value, other)
    # As LangGraph: numbers, also such as those in texts. Else texts, so that dates can be compared.
    left, right = _number(value), _number(other)
    if left is not None and right is not None:
        return compare(left, right)
    return isinstance(value, str) and isinstance(other, str) and compare(value, other)


def _number(value: object) -> float | None:
    try:
        return float(cast("Any", value))
    except (TypeError, ValueError, OverflowError):
        return None


_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def _has_operators(wanted: Mapping[str, object]) -> bool:
    return any(name.startswith("$") for name in wanted)


def _check_operators(wanted: object) -> None:
    if not isinstance(wanted, dict):
        return
    parts = cast("dict[str, object]", wanted)
    for name, value in parts.items():
        if _has_operators(parts) and name not in _OPERATORS:
            raise UsageError(f"filter: {name} is unknown. Use one of: {', '.join(_OPERATORS)}.")
        _check_operators(value)


def _matches(condition: MatchCondition, namespace: Namespace) -> bool:
    if condition.match_type not in ("prefix", "suffix"):
        raise UsageError(f"match_type: {condition.match_type} is unknown. Use prefix or suffix.")
    size = len(condition.path)
    part = namespace[:size] if condition.match_type == "prefix" else namespace[-size:]
    return len(part) == size and all(
        wanted in ("*", label) for label, wanted in zip(part, condition.path, strict=True)
    )
