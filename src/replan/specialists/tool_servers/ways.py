"""The ways to an MCP server: a program that is started, or an address."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Program:
    """A program that speaks over its standard streams."""

    command: str
    args: Sequence[str]
    env: Mapping[str, str] = field(repr=False)  # in addition to the few that every program needs
    folder: Path | None

    def __str__(self) -> str:
        return f"the program {self.command}"


@dataclass(frozen=True)
class Address:
    """A server that speaks streamable HTTP."""

    url: str
    headers: Mapping[str, str] = field(repr=False)

    def __str__(self) -> str:
        return f"the address {self.url}"


Way = Program | Address
