"""The team file that a new user begins with."""

from importlib.resources import files
from pathlib import Path

SCHEMA_NAME = "team.schema.json"
DEFAULT_TEAM = Path(__file__).with_name("default_team.yaml")
"""The team where none is named."""


def starter_team() -> str:
    """Give a commented team file that works as it is, without any model.

    Its first line tells editors that the schema stands beside it, as `team.schema.json`.
    """
    return files("replan.team").joinpath("starter_team.yaml").read_text("utf-8")
