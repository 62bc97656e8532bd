"""Mistakes in declarations: the field, the value, the reason and the fix of each."""

import re
from collections.abc import Container, Iterator
from typing import Any, Protocol, cast, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from replan.base.declared.part import Where, did_you_mean, field_path
from replan.base.errors import Mistake, mistake
from replan.base.secrets.masking import MASK, holds_key
from replan.base.secrets.sources import holds_secret
from replan.base.values import texts_of


class Placed(Protocol):
    """A document that knows where its fields are."""

    def position_of(self, where: Where, *, name: bool = False) -> tuple[int, int]:
        """The line and the column of a value, or of the name of its field."""
        ...


def key_fix(field: str, variable: str) -> str:
    """Return what to do with a key in a file, where a field names the variable that holds it."""
    put = f"Put the key in an environment variable and name that one: {field}: {variable}."
    return f"{put} A key that was shared in a file should be replaced."


FIX = key_fix("api_key_env", "OPENAI_API_KEY")


def keys_in(value: Any, where: Where = ()) -> Iterator[Where]:
    if isinstance(value, dict):
        for name, inner in cast("dict[str, Any]", value).items():
            yield from keys_in(inner, (*where, name))
    elif isinstance(value, list):
        for index, inner in enumerate(cast("list[Any]", value)):
            yield from keys_in(inner, (*where, index))
    elif isinstance(value, str) and holds_key(value):
        yield where


# Fields that a team had once or never, and what to write instead.
_FORMER = {
    "storage": "Give it as --storage WHERE, in Python open_runtime(team, storage=...).",
    "temperature": "Write it under models, and name that model: models: {fast: {model: ...}}.",
    "local": "Write use: replan_local:NAME in its place.",
    "retries": "Write limits: {step_retries: NUMBER} at the top, or (retries NUMBER) in the plan.",
    "retry": "Write limits: {step_retries: NUMBER} at the top, or (retries NUMBER) in the plan.",
    "timeout": "Write limits: {step_timeout: SECONDS} at the top, or (timeout 30s) in the plan.",
}
_NUMBER = "Write a number, without quotes."
_MAPPING = ("wrong_type", "This must have fields.", "Write {{NAME: VALUE}}, or one on each line.")
_FIELDS = ("wrong_type", "This must have fields.", "In Python, write {class_name}(...).")
# What pydantic finds: the code of the mistake, the reason, the fix.
_WORDS = {
    "missing": ("missing", "This is missing.", "Add it."),
    "string_type": ("wrong_type", "This must be text.", "Write text, in quotes where needed."),
    "int_type": ("wrong_type", "This must be a whole number.", _NUMBER),
    "float_type": ("wrong_type", "This must be a number.", _NUMBER),
    "int_parsing": ("wrong_type", "This must be a whole number.", _NUMBER),
    "float_parsing": ("wrong_type", "This must be a number.", _NUMBER),
    "bool_type": ("wrong_type", "This must be true or false.", "Write true or false."),
    "dict_type": _MAPPING,
    "mapping_type": _MAPPING,
    "tuple_type": ("wrong_type", "This must be a list.", "Write a list."),
    "model_type": _FIELDS,
    "literal_error": ("unknown_choice", "This is not one of the choices.", "Write {expected}."),
    "greater_than_equal": ("out_of_bounds", "This is too small.", "Write {ge} or more."),
    "greater_than": ("out_of_bounds", "This is too small.", "Write more than {gt}."),
    "less_than_equal": ("out_of_bounds", "This is too large.", "Write {le} or less."),
    "finite_number": (
        "out_of_bounds",
        "This is not a finite number.",
        "Write a number, or leave the field out.",
    ),
    "too_long": ("out_of_bounds", "This has too many entries.", "Give {max_length:,} at most."),
    "too_short": ("empty", "This is empty.", "Give at least one."),
    "string_pattern_mismatch": (
        "bad_value",
        "This has characters that are not allowed here.",
        "Write what fits the pattern {pattern}.",
    ),
    "datetime_from_date_parsing": (
        "bad_value",
        "This is not a time.",
        "Write one such as 2026-01-31T09:30:00Z.",
    ),
    "string_too_short": ("empty", "This is empty.", "Write something, or leave the field out."),
}
_SEE = "See `replan schema`."


_MOST = 200


def mistakes_in(
    error: ValidationError, kind: type[BaseModel], see: str = _SEE, source: Placed | None = None
) -> Iterator[Mistake]:
    """Tell what pydantic found: each field once, 200 at most.

    Args:
        error: What it found.
        kind: What should have been made.
        see: The fix where no other one is known.
        source: The document, which knows where each field is.
    """
    fields: dict[str, Mistake] = {}
    for details in error.errors(include_url=False)[:_MOST]:
        mistake = _mistake(details, kind, see, source)
        fields.setdefault(mistake.field, mistake)
    yield from fields.values()


def _mistake(
    error: ErrorDetails, kind: type[BaseModel], see: str, source: Placed | None
) -> Mistake:
    # A wrong key of a mapping has its own last part.
    where = tuple(part for part in error["loc"] if part != "[key]")
    value, in_name = error["input"], where != error["loc"]
    if error["type"] == "extra_forbidden":
        (code, reason, fix), in_name = _unknown(where, kind), True
    elif error["type"] == "missing":
        code, reason, in_name, value = "missing", "This is missing.", True, None
        fix = f"Add {where[-1]}{_purpose(where, kind)}."
    else:
        code, reason, fix = code_reason_fix(error, see)
    if error["type"] == "model_type":
        fields = _some_fields(_model_at(where, kind))
        fix = f"Write its fields under it, such as {fields}. {fix}"
    value = MASK if code == "literal_secret" else value
    return mistake_at(where, value, reason, fix, code, source, in_name=in_name)


def mistake_at(  # noqa: PLR0913 - what is known of a mistake
    where: Where,
    value: object,
    reason: str,
    fix: str,
    code: str,
    source: Placed | None,
    *,
    in_name: bool = False,
) -> Mistake:
    """Make the mistake of a field, with its place in its document."""
    # Keys that stand in place of names are not shown.
    field = field_path(tuple(MASK if holds_key(str(part)) else part for part in where))
    line, column = (0, 0) if source is None else source.position_of(where, name=in_name)
    return mistake(field, value, reason, fix, code, line, column)


def code_reason_fix(error: ErrorDetails, see: str) -> tuple[str, str, str]:
    """The code, the reason and the fix of what pydantic found."""
    context = error.get("ctx", {})
    if "fix" in context:
        return error["type"], context["reason"], context["fix"]
    if error["type"] not in _WORDS:
        return "bad_value", f"{error['msg'].removeprefix('Value error, ').rstrip('.')}.", see
    code, reason, fix = _WORDS[error["type"]]
    return code, reason, fix.format_map(context)


def _unknown(where: Where, kind: type[BaseModel]) -> tuple[str, str, str]:
    name = str(where[-1])
    fields = _model_at(where[:-1], kind).model_fields
    if holds_secret(name):
        reason = "A file must not contain a key."
        named = (
            (field_name, fields[field_name].examples)
            for field_name in fields
            if field_name.endswith("_env")
        )
        fixes = (key_fix(each, str(examples[0])) for each, examples in named if examples)
        return "literal_secret", reason, next(fixes, FIX)
    known = list(fields)
    inside = [field for field in known if name in _fields_in(fields[field].annotation)]
    at = f"Write it under {inside[0]}: in Python {inside[0]}=...({name}=...)." if inside else ""
    if len(where) > 1 and name in kind.model_fields:
        at = f"It is a field of the whole: write it at the top, not under {where[0]}."
    fix = _FORMER.get(name) or did_you_mean(
        name.casefold(), known, at or f"The fields are: {', '.join(known)}."
    )
    return "unknown_field", "There is no such field.", fix


def _some_fields(model: type[BaseModel]) -> str:
    """The fields that a value must have, else the first ones."""
    needed = [name for name, field in model.model_fields.items() if field.is_required()]
    return " and ".join((needed or [*model.model_fields])[:2])


def _purpose(where: Where, kind: type[BaseModel]) -> str:
    model, name = _model_at(where[:-1], kind), str(where[-1])
    field = model.model_fields.get(name)
    text = (field and field.description) or texts_of(model).get(name, "")
    # The first clause is enough in a message; an editor shows the whole.
    text = re.split(r"[:.(](?:\s|$)| \(", text)[0]
    return f" ({text[0].lower()}{text[1:]})" if text else ""


def _model_at(where: Where, kind: type[BaseModel]) -> type[BaseModel]:
    for part in where:
        field = kind.model_fields.get(str(part))
        kind = (_model_in(field.annotation) if field else None) or kind
    return kind


def _fields_in(annotation: Any) -> Container[str]:
    model = _model_in(annotation)
    return model.model_fields if model else ()


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    models = (_model_in(part) for part in get_args(annotation))
    return next((model for model in models if model is not None), None)
