"""`replan graph`: draw the graph of a team as text."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

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
    """Draw the graph of a team file, or of the local team.

    Raises:
        UsageError: The team file has mistakes, or a package is missing.
    """
    if ascii_art and find_spec("grandalf") is None:
        raise ConfigurationError(
            "format",
            "ascii",
            "drawing with signs needs grandalf, which is not installed",
            'Install it with: pip install "replan[drawing]"; or draw with --format mermaid.',
        )
    from langchain_core.language_models import BaseChatModel

    from replan.adapters.offline import OfflineModel
    from replan.app import build_graph, local_graph
    from replan.settings.team_file import read_team_file

    class ForDrawing:
        """Gives a model for every name: a drawing needs no keys."""

        def chat_model(self, name: str) -> BaseChatModel:
            return OfflineModel()

    if team is None:
        graph = local_graph(directory=Path(), environment=environment)
    else:
        config = read_team_file(team, environment, imports=False).config
        graph = build_graph(config, models=ForDrawing())
    drawing = graph.get_graph()
    return drawing.draw_ascii() if ascii_art else drawing.draw_mermaid()
