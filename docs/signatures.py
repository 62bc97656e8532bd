"""Whole signatures in the reference: what pydantic makes of the fields of a class."""

import re
from functools import cache
from importlib import import_module
from types import ModuleType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import griffe
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from replan.base.public_names import PACKAGES


class Signatures(griffe.Extension):
    """Give each class that pydantic makes the parameters that it takes."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Replace the `__init__` that takes anything."""
        home = _homes().get(cls.name)
        if home is None or cls.decorators or "__init__" in cls.members:
            return
        kind = getattr(home, cls.name)
        if f"{kind.__module__}.{kind.__qualname__}" == cls.path and issubclass(kind, BaseModel):
            made = griffe.Function("__init__", parameters=parameters(kind), parent=cls)
            cls.set_member("__init__", made)


@cache
def _homes() -> dict[str, ModuleType]:
    """The first package of each public name: loading every module would take seconds."""
    packages = map(import_module, reversed(PACKAGES))
    return {name: package for package in packages for name in package.__all__}


def parameters(kind: type[BaseModel]) -> griffe.Parameters:
    """The fields as parameters: those that may stand first without a name, then the others."""
    fields = kind.model_fields.items()
    first = [(name, field) for name, field in fields if field.kw_only is False]
    rest = [(name, field) for name, field in fields if field.kw_only is not False]
    rest.sort(key=lambda each: not each[1].is_required())
    positional, named = (
        griffe.ParameterKind.positional_or_keyword,
        griffe.ParameterKind.keyword_only,
    )
    return griffe.Parameters(
        griffe.Parameter("self", kind=positional),
        *(_parameter(name, field, positional) for name, field in first),
        *(_parameter(name, field, named) for name, field in rest),
    )


def _parameter(name: str, field: FieldInfo, kind: griffe.ParameterKind) -> griffe.Parameter:
    default = None if field.is_required() else plain_default(field)
    return griffe.Parameter(
        name, annotation=plain_type(field.annotation), kind=kind, default=default
    )


def plain_type(annotation: Any) -> str:
    """A type as people write it: without validators and modules."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if annotation is NoneType:
        return "None"
    if origin is Annotated:
        return plain_type(parts[0])
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, parts))}]"
    if origin in (Union, UnionType):
        texts = dict.fromkeys(map(plain_type, parts))
        return "Any" if "Any" in texts else " | ".join(texts)
    if origin is None:
        name = getattr(annotation, "__name__", None) or str(annotation)
        return "..." if annotation is Ellipsis else re.sub(r"\b(?:\w+\.)+(?=\w)", "", name)
    inner = ", ".join(
        f"[{', '.join(map(plain_type, each))}]" if isinstance(each, list) else plain_type(each)
        for each in parts
    )
    return f"{getattr(origin, '__name__', origin)}[{inner}]"


def plain_default(field: FieldInfo) -> str:
    """A default as people write it; a value with fields is shown by its class."""
    value = field.get_default(call_default_factory=not field.default_factory_takes_validated_data)
    if isinstance(value, BaseModel):
        return f"{type(value).__name__}()"
    return getattr(value, "__name__", None) or re.sub(r" at 0x\w+", "", repr(value))
