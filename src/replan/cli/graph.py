"""`replan graph`: draw the graph of a team as text."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from replan.cli.options import TeamFileOption
from replan.cli.process import end_with
from replan.errors import ConfigurationError


class DrawingFormat(StrEnum):
    """How a graph is drawn."""

    MERMAID = "mermaid"
    ASCII = "ascii"


def graph(
    *,
    team: TeamFileOption = None,
    drawing: Annotated[
        DrawingFormat, typer.Option("--format", "-f", help="The form of the drawing.")
    ] = DrawingFormat.MERMAID,
) -> None:
    """Draw the graph of a team."""

    def drawn() -> int:
        typer.echo(draw(team, os.environ, ascii_art=drawing is DrawingFormat.ASCII))
        return 0

    end_with(drawn)


def draw(team: Path | None, environment: Mapping[str, str], *, ascii_art: bool) -> str:
    """Draw the graph of a team file, or of the default team."""
    if ascii_art and find_spec("grandalf") is None:
        raise ConfigurationError(
            "format",
            "ascii",
            "drawing with signs needs grandalf, which is not installed",
            'Install it with: pip install "replan[drawing]"; or draw with --format mermaid.',
        )
    from langchain_core.language_models import BaseChatModel, FakeListChatModel

    from replan.assembly import build_graph
    from replan.team.file_team import DEFAULT_TEAM
    from replan.team.team_file import read_team_file

    class Drawn(FakeListChatModel):
        """Says nothing, and takes the tools that stand in a team."""

        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            return self

    class ForDrawing:
        """Gives a model for every name: a drawing needs no keys."""

        def chat_model(self, name: str, *, tenant: str = "") -> BaseChatModel:
            return Drawn(responses=[])

    config = read_team_file(team or DEFAULT_TEAM, environment, imports=False).config
    # Nor does it need tokens of tool servers.
    config = config.model_copy(update={"tool_servers": {}})
    drawing = build_graph(config, models=ForDrawing()).get_graph()
    return drawing.draw_ascii() if ascii_art else drawing.draw_mermaid()
