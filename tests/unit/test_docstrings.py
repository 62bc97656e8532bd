"""What docstrings show is so."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import replan

SRC = Path(replan.__file__).parents[1]
MODULES = [
    ".".join(path.relative_to(SRC).with_suffix("").parts)
    for path in sorted((SRC / "replan").rglob("*.py"))
    if ">>> " in path.read_text("utf-8")
]


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_in_the_docstrings_of_a_module_are_true(module):
    assert doctest.testmod(import_module(module)).failed == 0
