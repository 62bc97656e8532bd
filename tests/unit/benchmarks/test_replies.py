"""The corpus of replies: a sample of its open families, read as the nodes read."""

import pytest

SEED = 9


@pytest.fixture(scope="session")
def sample(script):
    """One wording of each open family in each of two languages."""
    corpus = script("replies_corpus")
    drawing = script("reply_families.drawing")
    away = corpus.holdout()
    languages = ("en", "zh", "de", "fr", "es", "ja", "ko", "pt", "ru", "ar")
    return [
        make(drawing.drawn(name, languages[(at + turn * 5) % 10], (at + turn) % 10, SEED))
        for at, (name, make) in enumerate(drawing.FAMILIES.items())
        if name not in away
        for turn in range(2)
    ]


def test_no_reply_of_the_sample_is_silently_wrong_or_an_error(script, sample):
    replies = script("replies")
    grades = {item.name: replies.grade_of(item) for item in sample}
    assert {name: grade for name, grade in grades.items() if grade[0] in ("wrong", "error")} == {}


def test_nearly_all_replies_of_the_sample_are_right_at_once(script, sample):
    replies = script("replies")
    right = sum(replies.grade_of(item)[0] == "right" for item in sample)
    assert right >= 0.95 * len(sample)


def test_a_corpus_is_the_same_whenever_it_is_drawn(script):
    corpus = script("replies_corpus")
    first, second = (list(corpus.replies(wordings=1)) for _ in range(2))
    assert first == second
    assert len({item.name for item in first}) == len(first)


def test_a_third_of_the_families_is_put_away_and_never_shown(script, rows):
    corpus = script("replies_corpus")
    drawing = script("reply_families.drawing")
    away = corpus.holdout()
    assert len(away) == len([n for n in drawing.FAMILIES if not n.startswith("later")]) // 3
    assert not away & {item.family for item in corpus.replies(wordings=1)}
    assert [row["replies of"] for row in rows("replies", "--holdout", "--wordings", "1")] == ["all"]
