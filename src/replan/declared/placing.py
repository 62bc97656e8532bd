"""Where in a file the mistakes are."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from replan.declared.fields import Surroundings
from replan.declared.mistakes import FIX, Found, found_in, keys_in, path_of, shown
from replan.declared.part import Part
from replan.declared.yaml_source import YamlSource
from replan.errors import ConfigurationError, DeclaredFileError, FieldMistake, TeamFileError
from replan.secrets.known import MASK

P = TypeVar("P", bound=Part)


def field_mistake(found: Found, source: YamlSource) -> FieldMistake:
    place = source.place_of(found.where, name=found.in_name)
    return FieldMistake(
        line=place.line,
        column=place.column,
        code=found.code,
        reason=found.reason,
        fix=found.fix,
        field=path_of(found.where),
        value=MASK if found.value == MASK else shown(found.value),
    )


def each_once_by_place(mistakes: Iterable[FieldMistake]) -> Sequence[FieldMistake]:
    first: dict[object, FieldMistake] = {}
    for mistake in mistakes:
        first.setdefault(mistake.field or (mistake.line, mistake.column), mistake)
    return sorted(first.values(), key=lambda each: (each.line, each.column))


def read_part(
    source: YamlSource,
    kind: type[P],
    around: Surroundings,
    refused: Callable[[Sequence[FieldMistake]], DeclaredFileError],
) -> P:
    """Make what a file declares.

    Raises:
        DeclaredFileError: It has mistakes, or a key stands in it; the error tells all of them.
    """
    found = [
        Found(where, "literal_secret", "This looks like a key.", FIX, source.at(where))
        for where in keys_in(source.value)
    ]
    part = None
    try:
        part = kind.model_validate(source.value, strict=True, context=around)
    except ValidationError as error:
        found += found_in(error, kind)
    mistakes = each_once_by_place(
        [*source.mistakes, *(field_mistake(each, source) for each in found)]
    )
    if part is None or mistakes:
        raise refused(mistakes)
    return part


@dataclass(frozen=True, eq=False)
class Origin:
    """The file that a team was read from; where a team is makes no difference to it."""

    path: Path
    source: YamlSource

    def refusal(self, mistakes: Iterable[ConfigurationError]) -> TeamFileError:
        """Return the error for mistakes that name fields, with their places in the file."""
        found = each_once_by_place(field_mistake(_found(each), self.source) for each in mistakes)
        return TeamFileError(self.path, found)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Origin)

    def __hash__(self) -> int:
        return hash(Origin)


def _found(error: ConfigurationError) -> Found:
    parts = re.findall(r"[^.\[\]]+", error.field)
    where = tuple(int(part) if part.isdigit() else part for part in parts)
    reason = f"{error.problem[:1].upper()}{error.problem[1:].rstrip('.')}."
    return Found(where, error.code, reason, error.fix, error.value)
