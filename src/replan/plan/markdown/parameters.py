"""The fenced `yaml` block under a step: its parameters."""

import math
from collections.abc import Mapping
from datetime import date
from typing import Any, cast

import yaml
from pydantic import JsonValue

from replan.base.texts.bounds import PARAMETERS
from replan.base.texts.storable import unstorable
from replan.base.texts.yaml_events import YamlBoundError, load_bounded
from replan.base.values import mapped, same

_ONE_LINE = 1_000_000_000


class ParametersError(ValueError):
    def __init__(self, problem: str, line: int = 0) -> None:
        self.line = line
        self.problem = problem
        super().__init__(problem)


def read_parameters(text: str) -> dict[str, JsonValue]:
    """Read a YAML mapping of JSON values; dates become ISO texts, keys become texts."""
    try:
        content = load_bounded(text, PARAMETERS)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "unreadable"
        raise ParametersError(f"It is not YAML: {problem}.", mark.line if mark else 0) from error
    except YamlBoundError as excess:
        raise ParametersError(f"{excess.problem}.", excess.line) from excess
    except (ValueError, OverflowError, TypeError, RecursionError) as error:
        raise ParametersError("A value in it cannot be read.") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ParametersError("It is not a mapping.")
    # Their size was checked before.
    found: dict[str, JsonValue] = mapped(content, _scalar, _key)
    if problem := unstorable(found):
        raise ParametersError(problem)
    return found


def write_parameters(parameters: Mapping[str, JsonValue]) -> str:
    """Write parameters as YAML that reads back equal, without a last line end."""
    plain = _written(parameters, allow_unicode=True)
    try:
        is_same = same(read_parameters(plain), dict(parameters))
    except ParametersError:
        # PyYAML writes a few rare line ends and marks so that it cannot read them again.
        is_same = False
    return plain if is_same else _written(parameters, allow_unicode=False, default_style='"')


def _written(parameters: Mapping[str, JsonValue], **style: Any) -> str:
    written = cast("Any", yaml).safe_dump
    text: str = written(dict(parameters), sort_keys=False, width=_ONE_LINE, **style)
    return text.removesuffix("\n")


def _key(found: object) -> str:
    scalar = _scalar(found)
    return scalar if isinstance(scalar, str) else str(found)


def _scalar(found: object) -> JsonValue:
    if isinstance(found, date):
        return found.isoformat()
    if found is None or isinstance(found, (str, bool, int)):
        return found
    if isinstance(found, float) and math.isfinite(found):
        return found
    raise ParametersError(f"{found!r} is not a JSON value.")
