"""Where in a file the mistakes are."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from pydantic import ValidationError

from replan.base.declared.fields import Surroundings
from replan.base.declared.mistakes import FIX, keys_in, mistake_at, mistakes_in
from replan.base.declared.part import Part
from replan.base.declared.yaml_source import YamlSource
from replan.base.errors import DeclaredFileError, Mistake

P = TypeVar("P", bound=Part)


def each_once_by_place(mistakes: Iterable[Mistake]) -> Sequence[Mistake]:
    """Order mistakes as their document is, the first one of each field."""
    first: dict[object, Mistake] = {}
    for mistake in mistakes:
        first.setdefault(mistake.field or (mistake.line, mistake.column), mistake)
    return sorted(first.values(), key=lambda mistake: (mistake.line, mistake.column))


def read_part(
    source: YamlSource,
    kind: type[P],
    around: Surroundings,
    refused: Callable[[Sequence[Mistake]], DeclaredFileError],
) -> P:
    """Make what a file declares.

    Raises:
        DeclaredFileError: It has mistakes, or a key stands in it; the error tells all of them.
    """
    mistakes = [
        *source.mistakes,
        *(
            mistake_at(where, source.at(where), "This looks like a key.", FIX, _SECRET, source)
            for where in keys_in(source.value)
        ),
    ]
    part = None
    try:
        part = kind.model_validate(source.value, strict=True, context=around)
    except ValidationError as error:
        mistakes += mistakes_in(error, kind, source=source)
    if part is None or mistakes:
        raise refused(each_once_by_place(mistakes))
    return part


_SECRET = "literal_secret"  # noqa: S105 - a kind of mistake
