"""Counts the entries of the lists and mappings of a request, before anything else reads them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from replan.errors import Mistake, mistake
from replan.state.session.context_fields import Path, shown_path

MOST_ENTRIES = 10_000
"""The entries of a field of a body, if the field does not declare a smaller number."""

MOST_PARTS = 1_000
"""The entries of a field of what a list has in it, such as the parts of a message."""

MOST_ANSWERS = 1_000
"""The answers of a request."""

_MOST_PROBLEMS = 100  # that are named of one body


def problems_of_counts(value: object, kind: type[BaseModel]) -> list[Mistake]:
    """The fields of a body that have too many entries, each with its count and its bound.

    Args:
        value: The body, as JSON.
        kind: What it should be. Of fields that it does not have, nothing is said.
    """
    mistakes: list[Mistake] = []
    for path, count, most in _too_long(value, [kind], (), MOST_ENTRIES):
        problem = f"it has {count:,} entries; at most {most:,} are read"
        fix = f"Send {most:,} at most."
        mistakes.append(
            mistake(shown_path(path), f"{count:,} entries", problem, fix, "out_of_bounds")
        )
        if len(mistakes) == _MOST_PROBLEMS:
            break
    return mistakes


def _too_long(
    body: object, kinds: Sequence[type[BaseModel]], path: Path, most_entries: int
) -> Iterator[tuple[Path, int, int]]:
    """The path, the count and the bound of each field below that has too many entries."""
    if not isinstance(body, Mapping):
        return
    for name, value in cast("Mapping[str, object]", body).items():
        fields = [field for kind in kinds for field in _fields_named(name, kind)]
        if not fields or not isinstance(value, list | dict):
            continue
        where, entries = (*path, name), cast("Sequence[object]", value)
        most = min([most_entries, *(most for field in fields for most in _bounds_of(field))])
        if len(entries) > most:
            yield where, len(entries), most
            continue
        inner = [kind for field in fields for kind in _models_in(field.annotation)]
        if isinstance(value, dict):
            yield from _too_long(cast("object", value), inner, where, most_entries)
            continue
        for place, entry in enumerate(entries):
            yield from _too_long(entry, inner, (*where, place), MOST_PARTS)


def _fields_named(name: str, kind: type[BaseModel]) -> Iterator[FieldInfo]:
    for field_name, field in kind.model_fields.items():
        if name in (field_name, field.alias):
            yield field


def _bounds_of(field: FieldInfo) -> Iterator[int]:
    """The lengths that a field declares, for itself or for a choice in it."""
    choices = [
        argument
        for choice in get_args(field.annotation)
        for argument in get_args(choice)
        if isinstance(argument, FieldInfo)
    ]
    for field_info in (field, *choices):
        for mark in field_info.metadata:
            length = getattr(mark, "max_length", None)
            if isinstance(length, int):
                yield length


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)
