"""Turn what is wrong with a field into a mistake with its place and its mend."""

from dataclasses import replace
from difflib import get_close_matches
from typing import Any, cast

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from replan.errors import FieldMistake
from replan.secrets.known import MASK
from replan.state.limits import Budget, Limits, Price
from replan.team.keys import MEND, names_secret, shown
from replan.team.sections import HostSection, ModelSection, SpecialistSection, TeamSection
from replan.team.yaml_source import Where, YamlSource, field_path

_SECTIONS: dict[Any, type[BaseModel]] = {
    "host": HostSection,
    "models": ModelSection,
    "specialists": SpecialistSection,
    "limits": Limits,
    "prices": Price,
}
_NESTED: dict[tuple[Any, Any], type[BaseModel]] = {
    ("limits", "per_step"): Budget,
    ("specialists", "limits"): Budget,
}
_NUMBER = "Write a number, without quotes."
# What pydantic finds: the code of the mistake, the reason, the mend.
_WORDS = {
    "string_type": ("wrong_type", "This must be text.", "Write text, in quotes where needed."),
    "int_type": ("wrong_type", "This must be a whole number.", _NUMBER),
    "float_type": ("wrong_type", "This must be a number.", _NUMBER),
    "bool_type": ("wrong_type", "This must be true or false.", "Write true or false."),
    "list_type": ("wrong_type", "This must be a list.", "Begin each entry with '- '."),
    "dict_type": ("wrong_type", "This must have fields.", "Write fields under it, indented."),
    "model_type": ("wrong_type", "This must have fields.", "Write fields under it, indented."),
    "literal_error": ("unknown_choice", "This is none of the choices.", "Write {expected}."),
    "greater_than_equal": ("out_of_bounds", "This is too small.", "Write {ge} or more."),
    "greater_than": ("out_of_bounds", "This is too small.", "Write more than {gt}."),
    "less_than_equal": ("out_of_bounds", "This is too large.", "Write {le} or less."),
    "finite_number": (
        "out_of_bounds",
        "This is no number that can be counted with.",
        "Write a number, or leave the field out.",
    ),
    "too_short": ("empty", "This is empty.", "Give at least one."),
    "string_too_short": ("empty", "This is empty.", "Write something, or leave the field out."),
}


def complain(source: YamlSource, where: Where, code: str, reason: str, mend: str) -> FieldMistake:
    """Make the mistake of the value that stands at a place."""
    place = source.place_of(where)
    return FieldMistake(
        line=place.line,
        column=place.column,
        code=code,
        reason=reason,
        mend=mend,
        field=_shown_path(where),
        value=shown(source.at(where)),
    )


def complaint_of(error: ErrorDetails, source: YamlSource) -> FieldMistake:
    """Tell what pydantic found in the words of a team file."""
    # A wrong key of a mapping has a last part of its own.
    where = tuple(part for part in error["loc"] if part != "[key]")
    if error["type"] == "extra_forbidden":
        return unknown_field(where, source)
    if error["type"] == "missing":
        return _missing(where, source)
    mistake = complain(source, where, *_words_of(error))
    if mistake.code == "literal_secret":
        return replace(mistake, value=MASK)
    return mistake if where == error["loc"] else _at_name(mistake, where, source)


def _words_of(error: ErrorDetails) -> tuple[str, str, str]:
    """The code, the reason and the mend."""
    context = error.get("ctx", {})
    if "mend" in context:
        return error["type"], context["reason"], context["mend"]
    if error["type"] not in _WORDS:
        return "bad_value", f"{error['msg'].rstrip('.')}.", "See `replan schema`."
    code, reason, mend = _WORDS[error["type"]]
    return code, reason, mend.format_map(context)


def unknown_field(where: Where, source: YamlSource) -> FieldMistake:
    """Tell of a field that a team file does not have, with the nearest one that it has."""
    name, place = str(where[-1]), source.place_of(where, name=True)
    is_secret = names_secret(name)
    known = known_fields(where[:-1])
    near = get_close_matches(name.casefold(), known, 1)
    mend = f"Did you mean {near[0]}?" if near else f"Known are: {', '.join(known)}."
    reason = "A key must not stand in a team file." if is_secret else "There is no such field."
    return FieldMistake(
        line=place.line,
        column=place.column,
        code="literal_secret" if is_secret else "unknown_field",
        reason=reason,
        mend=MEND if is_secret else mend,
        field=_shown_path(where),
        value=MASK if is_secret else shown(source.at(where)),
    )


def known_fields(section: Where) -> tuple[str, ...]:
    """The fields of the section at a place."""
    return tuple(_model_of(section).model_fields)


def _model_of(section: Where) -> type[BaseModel]:
    if not section:
        return TeamSection
    return _NESTED.get((section[0], section[-1]), _SECTIONS[section[0]])


def _missing(where: Where, source: YamlSource) -> FieldMistake:
    place, name = source.place_of(where, name=True), where[len(where) - 1]
    return FieldMistake(
        line=place.line,
        column=place.column,
        code="missing",
        reason="This is missing.",
        mend=f"Add {name} ({_purpose(where)}).",
        field=_shown_path(where),
    )


def _purpose(where: Where) -> str:
    *section, name = where
    # The first clause is enough in a message; an editor shows the whole.
    text = (
        cast("str", _model_of(tuple(section)).model_fields[str(name)].description)
        .partition(":")[0]
        .rstrip(".")
    )
    return text[0].lower() + text[1:]


def _shown_path(where: Where) -> str:
    # A key that was put in the place of a name is not told either.
    return field_path(tuple(_masked(part) for part in where))


def _masked(part: str | int) -> str | int:
    return part if isinstance(part, int) or shown(part) == repr(part) else MASK


def _at_name(mistake: FieldMistake, where: Where, source: YamlSource) -> FieldMistake:
    place, name = source.place_of(where, name=True), where[len(where) - 1]
    return replace(mistake, line=place.line, column=place.column, value=shown(name))
