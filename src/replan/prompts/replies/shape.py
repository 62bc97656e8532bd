"""The type that an answer must have: how it is requested, read, and read back from JSON.

The idea is pydantic-ai's `output_type`; the schema is in the prompt, so that any model can
follow it, and what comes back is checked by pydantic.
"""

import dataclasses
import json
import math
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import partial
from typing import Any, cast

from pydantic import (
    AliasChoices,
    BaseModel,
    JsonValue,
    PydanticSchemaGenerationError,
    TypeAdapter,
    ValidationError,
)
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, to_json

from replan.base.texts.storable import unstorable
from replan.prompts.replies.wrapping import json_in

Path = tuple[int | str, ...]
"""Where in a value a part is: names of fields, keys and places."""


def parts_of(value: object) -> dict[int | str, object] | None:
    """The parts of a value by name, key or place; None for a value that is compared whole."""
    if isinstance(value, BaseModel):
        fields: dict[int | str, object] = {
            name: getattr(value, name) for name in type(value).model_fields
        }
        return fields | (value.model_extra or {})
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            data_field.name: getattr(value, data_field.name, None)
            for data_field in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        mapping = cast("Mapping[Any, object]", value)
        return {key if isinstance(key, int) else str(key): mapping[key] for key in mapping}
    if isinstance(value, list | tuple):
        return dict(enumerate(cast("list[object]", value)))
    is_whole = isinstance(value, Enum | type) or not hasattr(value, "__dict__")
    if type(value).__eq__ is object.__eq__ and not is_whole:
        return {**vars(value)}
    return None


def difference(one: object, other: object) -> Path | None:
    """Where two values differ first; None if they are the same."""
    parts, others = parts_of(one), parts_of(other)
    if parts is None or others is None:
        return None if one == other else ()
    if type(one) is not type(other) or parts.keys() != others.keys():
        return ()
    for name, part in parts.items():
        if (below := difference(part, others[name])) is not None:
            return (name, *below)
    return None


def with_input_names(value: object, by_name: JsonValue) -> JsonValue:
    """Rename the fields in JSON of a value as its schema names them for who gives it."""
    parts = parts_of(value) or {}
    if isinstance(by_name, list):
        return [with_input_names(parts.get(at), part) for at, part in enumerate(by_name)]
    if not isinstance(by_name, dict):
        return by_name
    fields = type(value).model_fields if isinstance(value, BaseModel) else {}
    names = {name: _input_name(name, field) for name, field in fields.items()}
    return {
        names.get(name, name): with_input_names(parts.get(name), part)
        for name, part in by_name.items()
    }


def _input_name(name: str, field: FieldInfo) -> str:
    alias = field.validation_alias
    first = alias.choices[0] if isinstance(alias, AliasChoices) else alias
    return first if isinstance(first, str) else name


def first_part(value: object, is_wanted: Callable[[object], bool]) -> Path | None:
    """Where in a value the first part of a kind is; None without one."""
    return next(_parts_that(value, is_wanted), None)


def _parts_that(value: object, is_wanted: Callable[[object], bool]) -> Iterator[Path]:
    if is_wanted(value):
        yield ()
    for name, part in (parts_of(value) or {}).items():
        yield from ((name, *below) for below in _parts_that(part, is_wanted))


def is_secret(part: object) -> bool:
    """Whether a part is a secret of pydantic's, which JSON shows as asterisks."""
    return hasattr(part, "get_secret_value")


def has_no_json_number(part: object) -> bool:
    """Whether a part is a number that JSON has not: NaN or infinity."""
    return isinstance(part, float) and not math.isfinite(part)


LONGEST = 200_000
"""The most characters of a value as JSON; larger values belong in a file."""

_MOST_MISTAKES = 10
_NO_VALUE = object()


class MisshapenError(ValueError):
    """The value does not have the type; the text explains what is wrong with it."""


class Shape:
    """A type, with its JSON schema."""

    def __init__(self, wanted: Any) -> None:
        """Take a type: a pydantic model, a dataclass, a TypedDict, `list[Model]`, ..."""
        self.name = str(getattr(wanted, "__name__", wanted))
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(wanted)
            self.schema = self._adapter.json_schema()
            self._names = _names_in(self.schema)
        except (PydanticSchemaGenerationError, PydanticUserError, NameError) as error:
            raise TypeError(str(error).splitlines()[0]) from error

    @property
    def instruction(self) -> str:
        """The instruction to the model."""
        schema = json.dumps(self.schema, ensure_ascii=False)
        return (
            "The answer is read by a program: it is one JSON value that fits this JSON schema, "
            f"with nothing before or after it.\n\n```json\n{schema}\n```"
        )

    def read(self, text: str) -> JsonValue:
        """Read the value in a reply: the whole reply, or what its only code fence holds.

        Raises:
            MisshapenError: There is no value of the type.
        """
        try:
            value = cast("JsonValue", json.loads(json_in(text)))
        except (ValueError, RecursionError) as error:
            raise MisshapenError(f"there is no JSON value in it: {error}") from error
        names = set(value) if isinstance(value, dict) else set[str]()
        if names and self._names and not names.intersection(self._names):
            # Of an object without any field of the type, only defaults could be read.
            raise MisshapenError(
                f"it has none of the fields of {self.name}: {', '.join(self._names)}"
            )
        return self.checked(value)

    def checked(self, given: object) -> JsonValue:
        """Check a value of a program, or one that was read, and return it as JSON.

        Raises:
            MisshapenError: It is not of the type, or would not be the same when it is read back.
        """
        is_json = _is_json(given)
        try:
            if is_json:
                value = self._adapter.validate_json(to_json(given))
            else:
                value = self._adapter.validate_python(given)
        except ValidationError as error:
            raise MisshapenError(self._problem_text(error)) from error
        except ValueError as error:
            # What checks a value may be a function of the type's author.
            raise MisshapenError(f"it is not a {self.name}") from error
        try:
            kept = self._written(value, given if is_json else _NO_VALUE)
        except RecursionError as error:
            raise MisshapenError("it is nested too deep, or is a part of itself") from error
        if (length := len(json.dumps(kept, ensure_ascii=False, separators=(",", ":")))) > LONGEST:
            raise MisshapenError(f"it has {length} characters as JSON; {LONGEST} are kept")
        if why := unstorable(kept):
            raise MisshapenError(why)
        return kept

    def value_of(self, kept: JsonValue) -> Any:
        """Return the value of the type that was stored as JSON.

        Raises:
            MisshapenError: It was stored with another version of the type.
        """
        return self._read_back(kept, by_any_name=True)

    def _read_back(self, kept: JsonValue, *, by_any_name: bool) -> Any:
        # Without it, JSON has the names of the schema: then the type as it is reads it.
        either = by_any_name or None
        try:
            return self._adapter.validate_json(to_json(kept), by_alias=either, by_name=either)
        except ValidationError as error:
            raise MisshapenError(self._problem_text(error)) from error

    def _written(self, value: Any, given: object) -> JsonValue:
        """Write a value as JSON that is read back as the same value, named as in the schema."""
        problems: list[str] = []
        fitting: list[JsonValue] = []
        for form in self._forms(value, given, problems):
            if not self._loss(value, form):
                return form
            # Where a type has two names for a field, its own name is read, too.
            problem = self._loss(value, form, by_any_name=True)
            problems += [problem] * bool(problem)
            fitting += [form] * (not problem)
        if fitting:
            return fitting[0]
        why = _loss_of_kind(value) or problems[0]
        raise MisshapenError(f"it cannot be stored as JSON and read back: {why}")

    def _forms(self, value: Any, given: object, problems: list[str]) -> Iterator[JsonValue]:
        """The JSON that a value may be stored as; why there is none goes into the problems."""
        # What was given is of the type; but a secret in it would be stored as it is.
        kept_secret = first_part(value, is_secret) is not None
        dump = partial(self._adapter.dump_json, value, round_trip=True)
        writers: list[Callable[[], bytes]] = [partial(dump, by_alias=True)]
        if given is not _NO_VALUE and not kept_secret:
            writers.append(partial(to_json, given))
        writers += [
            lambda: to_json(with_input_names(value, json.loads(dump(by_alias=False)))),
            partial(dump, by_alias=False),
        ]
        for write in writers:
            try:
                form = json.loads(write(), parse_constant=_refuse_constant)
            except ValueError:
                # What serializes a value may be a function of the type's author.
                place = first_part(value, _has_no_json)
                problems.append(f"{_path_prefix(place or ())}it has no form in JSON")
            else:
                yield form

    def _loss(self, value: Any, form: JsonValue, *, by_any_name: bool = False) -> str:
        """What is lost where a value is read back from JSON; empty if nothing is."""
        try:
            read = self._read_back(form, by_any_name=by_any_name)
        except MisshapenError as error:
            return str(error)
        place = difference(value, read)
        if place == () and type(value) is not type(read):
            kinds = f"{type(value).__name__} is read back as {type(read).__name__}"
            return f"{kinds}; give an output type that says which one it is"
        return "" if place is None else f"{_path_prefix(place)}its value changes"

    def _problem_text(self, error: ValidationError) -> str:
        found = error.errors(include_url=False, include_context=False)
        problems = [
            f"{_path_prefix(details['loc'])}{_message(details)}"
            for details in found[:_MOST_MISTAKES]
        ]
        problems += [f"{len(found) - len(problems)} more"] if len(found) > len(problems) else []
        return f"it is not a valid {self.name}: {'; '.join(problems)}"


def _is_json(given: object) -> bool:
    """Whether a value is JSON as it is, and not an object that is written as JSON."""
    if not isinstance(given, dict | list | str | int | float | None):
        return False
    try:
        json.dumps(given)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _refuse_constant(name: str) -> JsonValue:
    raise ValueError(f"{name} is not JSON")


def _has_no_json(part: object) -> bool:
    """Whether a part alone cannot be written as JSON."""
    if parts_of(part):
        return False
    try:
        to_json(part)
    except ValueError:
        return True
    return False


def _loss_of_kind(value: object) -> str:
    """What a value has that JSON cannot hold; empty if there is nothing of the kind."""
    if (place := first_part(value, is_secret)) is not None:
        return f"{_path_prefix(place)}a secret is not stored; leave it out of the type"
    if (place := first_part(value, has_no_json_number)) is not None:
        return f"{_path_prefix(place)}JSON has no NaN and no infinity"
    return ""


def _message(mistake: ErrorDetails) -> str:
    """What is wrong, without the value that was given."""
    if mistake["input"] is None and mistake["type"] == "list_type":
        return f"{mistake['msg']}, and not null; write [] if it is empty"
    return mistake["msg"]


def _path_prefix(path: tuple[int | str, ...]) -> str:
    return f"{'.'.join(map(str, path))}: " if path else ""


def _names_in(schema: dict[str, Any]) -> list[str]:
    """The names of the fields of a schema that needs none of them; empty for any other."""
    reference = str(schema.get("$ref", "")).rpartition("/")[2]
    schema = schema.get("$defs", {}).get(reference, schema)
    has_others = schema.get("required") or schema.get("additionalProperties")
    return [] if has_others else list(schema.get("properties", {}))


def as_text(value: JsonValue) -> str:
    """Write a value for people and models."""
    return json.dumps(value, ensure_ascii=False, indent=2)
