"""Make a command of the parameters of a step, each of which is a part of one."""

from collections.abc import Mapping

from pydantic import JsonValue, ValidationError

from replan_local.commands import Calculate, Command, Figures, Query, Report, Search
from replan_local.grammar import MEANINGS, meaning, tree_of
from replan_local.refusals import CannotAnswerError, did_you_mean

_KINDS = {"librarian": Search, "calculator": Calculate, "writer": Report}
_RULES = {"measures": "measures", "by": "keys", "where": "conditions"}
"""What is written as in a sentence, and the rule of the grammar for it."""


def command_of(specialist: str, given: Mapping[str, JsonValue]) -> Command:
    kind = _KINDS.get(specialist) or (Query if "sql" in given else Figures)
    parts = {
        name: _parts(name, given[name], rule) for name, rule in _RULES.items() if name in given
    }
    try:
        return kind.model_validate({**given, **parts}, strict=True)
    except ValidationError as error:
        # A parameter that is not known may be one that is missing, misspelled.
        last = error.errors()[-1]
        name = ".".join(map(str, last["loc"]))
        message = f"The parameter '{name}' cannot be {last['input']!r}: {last['msg']}."
        hint = did_you_mean(name, kind.model_fields) if last["type"] == "extra_forbidden" else ""
        raise CannotAnswerError(message + hint) from None


def _parts(name: str, value: JsonValue, rule: str) -> tuple[object, ...]:
    texts = value if isinstance(value, list) else [value]
    try:
        return tuple(part for text in texts for part in meaning(tree_of(str(text), rule), MEANINGS))
    except CannotAnswerError as refusal:
        raise CannotAnswerError(f"The parameter '{name}': {refusal}") from None
