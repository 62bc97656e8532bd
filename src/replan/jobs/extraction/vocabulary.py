"""The words of numbers and days, in the file `words.toml`."""

import tomllib
from importlib.resources import files
from typing import Any

WORDS: dict[str, Any] = tomllib.loads(
    files("replan.jobs.extraction").joinpath("words.toml").read_text("utf-8")
)
