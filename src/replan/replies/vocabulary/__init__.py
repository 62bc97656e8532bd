"""The words of replies: keys, labels and names, in all languages."""

import tomllib
from importlib.resources import files
from typing import cast

_TABLES = cast(
    "dict[str, dict[str, list[str]]]",
    tomllib.loads((files("replan.replies.vocabulary") / "words.toml").read_text(encoding="utf-8")),
)


def tables(name: str) -> dict[str, list[str]]:
    return _TABLES[name]


def words(table: str, name: str) -> list[str]:
    return _TABLES[table][name]
