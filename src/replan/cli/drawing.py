"""Draw the graph of a team as text."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from langchain_core.language_models import BaseChatModel

from replan.adapters.offline import OfflineModel
from replan.assembly import build_graph, local_graph
from replan.errors import ConfigurationError
from replan.team.team_file import read_team_file


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
    if team is None:
        graph = local_graph(directory=Path(), environment=environment)
    else:
        config = read_team_file(team, environment, imports=False).config
        graph = build_graph(config, models=_ForDrawing())
    drawing = graph.get_graph()
    return drawing.draw_ascii() if ascii_art else drawing.draw_mermaid()


class _ForDrawing:
    """Gives a model for every name: a drawing needs no keys."""

    def chat_model(self, name: str) -> BaseChatModel:
        return OfflineModel()
