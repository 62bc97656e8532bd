"""What a function says that it returns, and whether that can be of an output type at all."""

import dataclasses
import inspect
import types
from collections.abc import Awaitable, Mapping
from typing import Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, RootModel
from typing_extensions import is_typeddict

_TEXTS = {"BaseMessage", "SpecialistResult"}
"""Classes, by their names, whose text may hold the value; a team imports no framework."""

_KINDS: dict[str, tuple[type, ...]] = {
    "none": (type(None),),
    "text": (str,),
    "number": (int, float),
    "mapping": (Mapping,),
    "row": (list, tuple, set, frozenset),
}


def returned_type(function: object) -> object:
    """What a function is declared to return, once it is awaited; Any if it does not say."""
    is_function = inspect.isroutine(function)
    work: Any = function if is_function else getattr(function, "__call__", None)  # noqa: B004 - its hints
    try:
        hint = get_type_hints(work, include_extras=True).get("return", Any)
    except (NameError, TypeError, AttributeError):
        return Any
    origin = get_origin(hint)
    is_awaited = isinstance(origin, type) and issubclass(origin, Awaitable)
    return get_args(hint)[-1] if is_awaited else hint


def cannot_be(returned: object, wanted: object) -> bool:
    """Whether nothing of one type can be read as a value of the other; False in any doubt."""
    return all(_differ(one, other) for one in _members(returned) for other in _members(wanted))


def _members(hint: object) -> list[object]:
    """The types that a hint stands for: those of a union, without annotations."""
    if get_origin(hint) is Annotated:
        return _members(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        return [member for argument in get_args(hint) for member in _members(argument)]
    return [type(None) if hint is None else hint]


def _differ(returned: object, wanted: object) -> bool:
    one, other = get_origin(returned) or returned, get_origin(wanted) or wanted
    if not isinstance(one, type) or not isinstance(other, type) or _may_be_text(one):
        return False
    kind, wanted_kind = _kind_of(one), _kind_of(other)
    if not kind or not wanted_kind:
        return False
    if wanted_kind == "record":
        return _cannot_make(one, returned, cast("type[Any]", other))
    items = (get_args(returned), get_args(wanted))
    if kind == wanted_kind == "row":
        return all(len(item) == 1 for item in items) and cannot_be(items[0][0], items[1][0])
    return kind != wanted_kind


def _kind_of(one: type) -> str:
    """The kind of a class; empty if it is of none that is known."""
    if is_typeddict(one):
        return "mapping"
    if dataclasses.is_dataclass(one) or issubclass(one, BaseModel):
        return "" if issubclass(one, RootModel) else "record"
    return next((name for name, classes in _KINDS.items() if issubclass(one, classes)), "")


def _cannot_make(one: type, returned: object, record: type[Any]) -> bool:
    """Whether a class, and a hint of it, cannot be read as a model or a dataclass."""
    if issubclass(record, BaseModel) and _reads_more(record):
        return False
    if _kind_of(one) == "record":
        return not issubclass(one, record) and not issubclass(record, one)
    if _kind_of(one) != "mapping":
        return True
    values = get_args(returned)[1:]
    fields = record.model_fields if issubclass(record, BaseModel) else {}
    hints = [field.annotation for field in fields.values() if field.is_required()]
    return any(cannot_be(value, hint) for value in values for hint in hints)


def _reads_more(model: type[BaseModel]) -> bool:
    """Whether a model may read other things than mappings of its fields."""
    rules = cast("Any", model).__pydantic_decorators__.model_validators.values()
    config = model.model_config
    return (
        any(rule.info.mode != "after" for rule in rules)
        or bool(config.get("from_attributes"))
        or bool(config.get("coerce_numbers_to_str"))
        or model.__pydantic_custom_init__
    )


def _may_be_text(kind: type) -> bool:
    return issubclass(kind, str) or any(base.__name__ in _TEXTS for base in kind.__mro__)
