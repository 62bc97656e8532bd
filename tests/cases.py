"""Tables of texts, and of what is made of them, which stand as YAML beside their tests."""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from golden import plain

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def cases_of(test: str) -> dict[str, Any]:
    """The tables of a test module, by their names: `cases_of(__file__)`."""
    return read_page(_beside(test))


def read_page(path: Path) -> Any:
    """What a page of YAML has; they are large enough to be read in C."""
    return yaml.load(path.read_text("utf-8"), _LOADER)  # noqa: S506 - safe, either way


def check_cases(test: str, name: str, reader: Callable[[dict[str, Any], str], object]) -> None:
    """See that each text of a table gives what stands below it, less what has nothing in it.

    `reader` gets the table, for what its texts have in common, and the text.
    `REPLAN_TEST_WRITE_SNAPSHOTS=1 make test` writes what they give.
    """
    tables = _known(test)
    before = tables[name]["cases"]
    now = [
        {"text": case["text"], "gives": plain(reader(tables[name], case["text"]))}
        for case in before
    ]
    if os.environ.get("REPLAN_TEST_WRITE_SNAPSHOTS"):
        tables[name]["cases"] = now
        told = yaml.dump(tables, Dumper=_Readable, allow_unicode=True, sort_keys=False, width=100)
        _beside(test).write_text(told, "utf-8")
    else:
        assert now == before


def _beside(test: str) -> Path:
    return Path(test).with_suffix(".yaml")


_known = cache(cases_of)


class _Readable(yaml.SafeDumper):
    """Writes texts of several lines as they are."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        style = "|" if "\n" in data else None
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Readable.add_representer(str, _Readable.represent_str)
