"""Make a command of the parameters of a step, each of which is a part of one."""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue, ValidationError

from replan_local.commands import Calculate, Command, Describe, Figures, Report, Search, Sql
from replan_local.grammar import parse_part
from replan_local.refusals import CannotAnswerError, did_you_mean

PARAMETERS: Mapping[str, Sequence[str]] = {
    "data_analyst": ("sql", "table", "measures", "by", "where", "top", "bottom"),
    "librarian": ("query", "file", "top"),
    "calculator": ("expression",),
    "writer": ("title", "chart"),
}
"""What each specialist takes."""

_KINDS = {"librarian": Search, "calculator": Calculate, "writer": Report}
_RULES = {"measures": "measures", "by": "keys", "where": "conditions"}
"""What is written as in a sentence, and the rule of the grammar for it."""


def command_of(specialist: str, given: Mapping[str, JsonValue]) -> Command:
    known = PARAMETERS[specialist]
    for name in given:
        if name not in known:
            message = f"No parameter '{name}'. There are: {', '.join(known)}."
            raise CannotAnswerError(f"{message}{did_you_mean(name, known)}")
    if "sql" in given and len(given) > 1:
        raise CannotAnswerError("The parameter 'sql' allows no other: the query says everything.")
    kind = _KINDS.get(specialist) or _kind_of_query(given)
    parts = {
        name: _parts(name, given[name], rule) for name, rule in _RULES.items() if name in given
    }
    try:
        return kind.model_validate({**given, **parts}, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        message = f"The parameter '{name}' cannot be {first['input']!r}: {first['msg']}."
        raise CannotAnswerError(message) from None


def _kind_of_query(given: Mapping[str, JsonValue]) -> type[Sql | Describe | Figures]:
    if "sql" in given:
        return Sql
    return Describe if set(given) == {"table"} else Figures


def _parts(name: str, value: JsonValue, rule: str) -> tuple[object, ...]:
    texts = value if isinstance(value, list) else [value]
    try:
        return tuple(part for text in texts for part in parse_part(_text(text), rule))
    except CannotAnswerError as refusal:
        raise CannotAnswerError(f"The parameter '{name}': {refusal}") from None


def _text(value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    raise CannotAnswerError(f"{value!r} must be a text, or a list of texts.")
