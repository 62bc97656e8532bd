"""Files that hold what is shown, one for each view: a change of a view is a change that one reads.

`REPLAN_TEST_WRITE_SNAPSHOTS=1 make test` writes them anew. All times in them are those of UTC.
"""

import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel


def check_golden(path: Path, sections: dict[str, str]) -> None:
    text = "".join(f"=== {name}\n{shown.rstrip()}\n\n" for name, shown in sections.items())
    if os.environ.get("REPLAN_TEST_WRITE_SNAPSHOTS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


def as_yaml(value: object) -> str:
    """A value of dataclasses or models, without the fields that have nothing in them."""
    return yaml.safe_dump(plain(value), allow_unicode=True, default_flow_style=None, width=100)


def plain(value: Any) -> Any:
    """A value of dataclasses or models as YAML has it, without fields that have nothing in them."""
    if is_dataclass(value) or isinstance(value, BaseModel):
        names = (
            [each.name for each in fields(value)] if is_dataclass(value) else value.model_fields_set
        )
        held = {name: getattr(value, name) for name in sorted(names)}
        return plain({name: each for name, each in held.items() if each not in (None, "", (), 0)})
    match value:
        case Mapping():
            return {str(name): plain(each) for name, each in value.items()}
        case list() | tuple():
            return [plain(each) for each in value]
        case datetime():
            return f"{value:%Y-%m-%d %H:%M:%S}"
        case float():
            return round(value, 4)
    return value.value if isinstance(value, Enum) else value
