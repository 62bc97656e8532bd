"""A sample of the corpus of `benchmarks/`: the open families, read as the nodes read them."""

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
SEED = 9


@pytest.fixture(scope="module")
def graded():
    """The grades of one wording of each open family in each of two languages, by name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        corpus = importlib.import_module("replies_corpus")
        drawing = importlib.import_module("reply_families.drawing")
        words = importlib.import_module("reply_families.words")
        replies = importlib.import_module("replies")
    away = corpus.holdout()
    languages = tuple(words.LANGUAGES)
    items = [
        make(drawing.drawn(name, languages[(at + turn * 5) % 10], (at + turn) % 10, SEED))
        for at, (name, make) in enumerate(drawing.FAMILIES.items())
        if name not in away
        for turn in range(2)
    ]
    return {item.name: replies.grade_of(item)[0] for item in items}


def test_no_reply_is_silently_wrong_or_an_error(graded):
    assert {name: grade for name, grade in graded.items() if grade in ("wrong", "error")} == {}


def test_nearly_all_replies_are_right_at_once(graded):
    right = sum(grade == "right" for grade in graded.values())
    assert right >= 0.94 * len(graded)
