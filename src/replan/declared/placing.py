"""Where in a file the mistakes are."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from replan.declared.keys import shown
from replan.declared.mistakes import Found, path_of
from replan.declared.surroundings import as_sentence
from replan.declared.yaml_source import YamlSource
from replan.errors import ConfigurationError, FieldMistake, TeamFileError
from replan.secrets.known import MASK


def placed(found: Found, source: YamlSource) -> FieldMistake:
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


def in_order(mistakes: Iterable[FieldMistake]) -> Sequence[FieldMistake]:
    first: dict[object, FieldMistake] = {}
    for mistake in mistakes:
        first.setdefault(mistake.field or (mistake.line, mistake.column), mistake)
    return sorted(first.values(), key=lambda each: (each.line, each.column))


@dataclass(frozen=True, eq=False)
class Origin:
    """The file that a team was read from; where a team is makes no difference to it."""

    path: Path
    source: YamlSource

    def refusal(self, mistakes: Iterable[ConfigurationError]) -> TeamFileError:
        """Tell mistakes that were found by the paths of fields with their places."""
        found = in_order(placed(_found(each), self.source) for each in mistakes)
        return TeamFileError(self.path, found)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Origin)

    def __hash__(self) -> int:
        return hash(Origin)


def _found(error: ConfigurationError) -> Found:
    parts = re.findall(r"[^.\[\]]+", error.field)
    where = tuple(int(part) if part.isdigit() else part for part in parts)
    return Found(where, error.code, as_sentence(error.problem), error.fix, error.value)
