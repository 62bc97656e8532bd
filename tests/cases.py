"""Tables of texts, and of what is made of them, which stand as YAML beside their tests."""

from pathlib import Path
from typing import Any

import yaml


def cases_of(test: str) -> dict[str, Any]:
    """The tables of a test module, by their names: `cases_of(__file__)`."""
    return yaml.safe_load(Path(test).with_suffix(".yaml").read_text("utf-8"))
