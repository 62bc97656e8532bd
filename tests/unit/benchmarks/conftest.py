"""The benchmarks are scripts beside the package: their folder goes on the path."""

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture(scope="session")
def script() -> Iterator[Callable[[str], ModuleType]]:
    """Import a benchmark, or what benchmarks share, by its name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        yield import_module


@pytest.fixture(scope="session")
def rows(script: Callable[[str], ModuleType]) -> Callable[..., list[dict[str, Any]]]:
    """Run a benchmark with the options of a command line."""

    def run(name: str, *words: str) -> list[dict[str, Any]]:
        benchmark = script(name)
        return benchmark.main(benchmark.arguments().parse_args(words))

    return run
