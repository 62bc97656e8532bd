"""The fenced `yaml` block under a step: its parameters."""

import math
from collections.abc import Mapping
from datetime import date
from typing import Any, cast

import yaml
from pydantic import JsonValue

_DEEPEST = 100
_ONE_LINE = 1_000_000_000
_Loader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class ParametersError(ValueError):
    """A yaml block does not hold parameters.

    Attributes:
        line: The line within the block, counted from 0.
        problem: What is wrong.
    """

    def __init__(self, problem: str, line: int = 0) -> None:
        self.line = line
        self.problem = problem
        super().__init__(problem)


def read_parameters(text: str) -> dict[str, JsonValue]:
    """Read a YAML mapping of JSON values; dates become ISO texts, keys become texts.

    Raises:
        ParametersError: It is no YAML, no mapping, or holds what JSON cannot.
    """
    try:
        content = yaml.load(text, Loader=_Loader)  # noqa: S506 - the loader is a safe one
    except yaml.YAMLError as error:
        raise ParametersError(_problem(error), _line(error)) from error
    except (ValueError, OverflowError, TypeError, RecursionError) as error:
        raise ParametersError("A value in it cannot be read.") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ParametersError("It holds no mapping.")
    return cast("dict[str, JsonValue]", _Json(len(text)).value(cast("object", content)))


def write_parameters(parameters: Mapping[str, JsonValue]) -> str:
    """Write parameters as YAML that reads back equal, without a last line end."""
    plain: str = yaml.safe_dump(
        dict(parameters), allow_unicode=True, sort_keys=False, width=_ONE_LINE
    )
    try:
        if same(read_parameters(plain), dict(parameters)):
            return plain.removesuffix("\n")
    except ParametersError:
        # PyYAML writes a few rare line ends and marks so that it cannot read them again.
        return _quoted(parameters)
    return _quoted(parameters)


def same(one: JsonValue, two: JsonValue) -> bool:
    """Whether two JSON values are equal and of the same kinds, so that `1` is not `True`."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(same, one, two))
    return type(one) is type(two) and one == two


def _quoted(parameters: Mapping[str, JsonValue]) -> str:
    text: str = yaml.safe_dump(
        dict(parameters), allow_unicode=False, sort_keys=False, width=_ONE_LINE, default_style='"'
    )
    return text.removesuffix("\n")


class _Json:
    """Turns what YAML read into JSON values, and counts them: aliases can make them explode."""

    def __init__(self, length: int) -> None:
        # Without aliases a text holds fewer values than characters.
        self._left = length + 1

    def value(self, found: object, depth: int = 0) -> JsonValue:
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST:
            raise ParametersError("It holds too many values, or they are nested too deeply.")
        if isinstance(found, dict):
            pairs = cast("dict[object, object]", found).items()
            return {self._key(key): self.value(item, depth + 1) for key, item in pairs}
        if isinstance(found, list):
            return [self.value(item, depth + 1) for item in cast("list[object]", found)]
        return self._scalar(found)

    def _key(self, found: object) -> str:
        scalar = self._scalar(found)
        return scalar if isinstance(scalar, str) else str(found)

    @staticmethod
    def _scalar(found: object) -> JsonValue:
        if isinstance(found, date):
            return found.isoformat()
        if found is None or isinstance(found, (str, bool, int)):
            return found
        if isinstance(found, float) and math.isfinite(found):
            return found
        raise ParametersError(f"{found!r} is no JSON value.")


def _line(error: yaml.YAMLError) -> int:
    mark = getattr(error, "problem_mark", None)
    return int(mark.line) if mark is not None else 0


def _problem(error: yaml.YAMLError) -> str:
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "unreadable"
    return f"It is no YAML: {problem}."
