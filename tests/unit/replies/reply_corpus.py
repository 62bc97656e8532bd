"""The corpus of replies: what models have been seen to write, and what a person takes it to mean.

The files in `corpus/` are TOML; their format is described at the top of `corpus/think.toml`.

    for case in load("think"):
        case.text, case.is_readable, case.expected
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replan.plan import PlanDocument

FOLDER = Path(__file__).parent / "corpus"
_ABOUT = ("name", "text", "why", "read", "reading")


@dataclass(frozen=True)
class Case:
    """One reply and its expected reading.

    Attributes:
        node: `think`, `feedback` or `specialist`.
        is_readable: Whether it may be read without asking again.
        expected: The expected parts of the reading, as they stand in the file.
    """

    node: str
    name: str
    text: str
    is_readable: bool
    expected: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.node}-{self.name}"

    def differences(self, reading: object) -> list[str]:
        """Say in which parts a reading differs from the expected one."""
        return [
            f"{key}: expected {value!r} in {reading!r}"
            for key, value in self.expected.items()
            if not _agrees(key, value, reading)
        ]


def load(node: str) -> list[Case]:
    """Load all replies of a node."""
    entries = tomllib.loads((FOLDER / f"{node}.toml").read_text(encoding="utf-8"))["reply"]
    return [
        Case(
            node=node,
            name=entry["name"],
            text=entry["text"],
            is_readable=entry.get("read", "ok") == "ok",
            expected={key: value for key, value in entry.items() if key not in _ABOUT},
        )
        for entry in entries
    ]


def _agrees(key: str, value: Any, reading: Any) -> bool:
    name, _, how = key.rpartition("_")
    if how in ("has", "lacks"):
        text = getattr(reading, name)
        return all((part in text) is (how == "has") for part in value)
    if key == "contradiction":
        return bool(getattr(reading, key)) is value
    if key == "is_plan":
        return bool(PlanDocument.recover(reading.body).plan.steps) is value
    return bool(getattr(reading, key) == value)
