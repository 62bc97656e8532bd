"""Find the files that a step names, as people write them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from pydantic import JsonValue

from replan_local.analyst.tables import TableFile
from replan_local.parameters import given_names

_PLAIN = re.compile(
    r"(?<![^\s,;:'\"()`\[\]])[^\s,;:'\"()`\[\]]*[^\s,;:'\"()`./\[\]]\.(?:csv|tsv|parquet|json|jsonl|ndjson)\b",
    re.IGNORECASE,
)


def names_in(text: str, files: Sequence[TableFile]) -> tuple[tuple[str, ...], str]:
    """Give the file names in a text, and the text without them, for they may look like columns.

    A name of one word is found whether there is such a file or not; one with blanks or signs in it
    only if there is.
    """
    found: list[str] = []
    for name in _odd_names(files):
        pattern = re.compile(rf"(?<![\w/.-]){re.escape(name)}(?!\w)", re.IGNORECASE)
        if pattern.search(text):
            found.append(name)
            text = pattern.sub(" ", text)
    found += [match[0] for match in _PLAIN.finditer(text)]
    return tuple(dict.fromkeys(found)), _PLAIN.sub(" ", text)


def names_given(parameters: Mapping[str, JsonValue], files: Sequence[TableFile]) -> tuple[str, ...]:
    """Give the file names in the parameter `file`: a list, or a text that commas may divide.

    Raises:
        CannotAnswerError: It holds something else.
    """
    value = parameters.get("file")
    if isinstance(value, str) and value.strip().casefold() in map(str.casefold, _odd_names(files)):
        return (value.strip(),)
    return given_names(parameters, "file")


def _odd_names(files: Sequence[TableFile]) -> list[str]:
    """Names that are no single word, the longest first: one may be the end of another."""
    names = {name for file in files for name in _spellings(file)}
    return sorted((name for name in names if not _PLAIN.fullmatch(name)), key=len, reverse=True)


def _spellings(file: TableFile) -> Iterator[str]:
    yield file.name
    yield PurePosixPath(file.name).name
