"""Draw the graph of a team as text."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel, FakeListChatModel

from replan.app import build_graph
from replan.errors import ConfigurationError
from replan.settings.starter import DEFAULT_TEAM
from replan.settings.team_file import read_team_file


def draw(team: Path | None, environment: Mapping[str, str], *, ascii_art: bool) -> str:
    """Draw the graph of a team file, or of the default team.

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
    config = read_team_file(team or DEFAULT_TEAM, environment, imports=False).config
    graph = build_graph(config, models=_ForDrawing())
    drawing = graph.get_graph()
    return drawing.draw_ascii() if ascii_art else drawing.draw_mermaid()


class _Drawn(FakeListChatModel):
    """Says nothing, and takes the tools that stand in a team."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


class _ForDrawing:
    """Gives a model for every name: a drawing needs no keys."""

    def chat_model(self, name: str) -> BaseChatModel:
        return _Drawn(responses=[])
