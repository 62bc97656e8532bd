"""The type that an answer must have: how it is requested, and how it is read.

The idea is pydantic-ai's `output_type`; the schema is in the prompt, so that any model can
follow it, and what comes back is checked by pydantic.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, cast

from pydantic import JsonValue, PydanticSchemaGenerationError, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import to_json

from replan.replies.forms.json_text import decode
from replan.texts.storable import unstorable

LONGEST = 200_000
"""The most characters of a value as JSON; larger values belong in a file."""

_MOST_MISTAKES = 10
_FENCED = re.compile(r"^```[^\n`]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_NO_VALUE = object()
_START = re.compile(r"[{\[]")


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
        """Read the value in a reply: the whole reply, its fence, or a value inside other text."""
        fitting: list[JsonValue] = []
        first: MisshapenError | None = None
        for value in _values_in(text):
            try:
                fits = self.checked(value)
            except MisshapenError as error:
                first = first or error
            else:
                fitting += [] if fits in fitting else [fits]
        if len(fitting) > 1:
            raise MisshapenError(f"there are {len(fitting)} values that fit {self.name}; give one")
        if not fitting:
            raise first or MisshapenError("there is no JSON value in it, or it is cut off")
        return fitting[0]

    def checked(self, given: object) -> JsonValue:
        """Check a value of a program, or one that was read, and return it as JSON."""
        try:
            if isinstance(given, dict | list | str | int | float | bool | None):
                value = self._adapter.validate_json(to_json(given))
            else:
                value = self._adapter.validate_python(given)
            written = self._adapter.dump_json(value).decode()
        except ValidationError as error:
            raise MisshapenError(self._problem_text(error)) from error
        except ValueError as error:
            # What serializes a value may be a function of the type's author.
            raise MisshapenError(f"it is not a {self.name} that can be stored as JSON") from error
        if len(written) > LONGEST:
            raise MisshapenError(f"it has {len(written)} characters as JSON; {LONGEST} are kept")
        kept: JsonValue = json.loads(written)
        if why := unstorable(kept):
            raise MisshapenError(why)
        return kept

    def value_of(self, kept: JsonValue) -> Any:
        """Return the value of the type that was stored as JSON."""
        return self._adapter.validate_json(to_json(kept))

    def _problem_text(self, error: ValidationError) -> str:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        problems = [f"{_place(each['loc'])}{each['msg']}" for each in found[:_MOST_MISTAKES]]
        problems += [f"{len(found) - len(problems)} more"] if len(found) > len(problems) else []
        return f"it is not a valid {self.name}: {'; '.join(problems)}"


def _place(path: tuple[int | str, ...]) -> str:
    return f"{'.'.join(map(str, path))}: " if path else ""


def _values_in(text: str) -> Iterator[JsonValue]:
    """The JSON values that may be meant: the whole text, else its fences, else values inside it."""
    whole = _strictly(text)
    if whole is not _NO_VALUE:
        yield cast("JsonValue", whole)
        return
    fenced = [each.group(1) for each in _FENCED.finditer(text)]
    for part in fenced or [text]:
        at = 0
        while (start := _START.search(part, at)) is not None:
            found = decode(part, start.start())
            if found.is_cut or found.end <= start.start():
                break
            yield cast("JsonValue", found.value)
            at = found.end


def _strictly(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _NO_VALUE


def as_text(value: JsonValue) -> str:
    """Write a value for people and models."""
    return json.dumps(value, ensure_ascii=False, indent=2)
