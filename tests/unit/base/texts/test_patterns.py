"""Every pattern of the package ends soon on every text that its door lets through."""

import time

import pytest

import replan
import replan_local
from pumping import Found, patterns_of, pumped
from replan.base.texts.bounds import STEP_LINE

# A pattern is to end in 10 ms. On a slow machine, with many tests at a time, one that takes more
# is slow if half of the text takes it less than a third of the time.
_SECONDS = 0.15
_TOO_LONG = 10 * _SECONDS
_SHORT, _MEDIUM = 25, 400
_SLOWEST = 4
_PARTS = 4  # of the patterns, so that no test takes long

# What reads less than a whole line, since its caller cuts the text, and how it is used.
_READS = {
    "replan.plan.markdown.overlooked._": (2_000, None),
    "replan.models.reply_end._REPEATED": (200, ("fullmatch",)),
    "replan.prompts.replies.body_stream._END": (200, ("search",)),
    "replan.jobs.extraction.answers._AFTER": (40, ("sub",)),
    "replan.jobs.extraction.numbers._APPROXIMATE['between']": (40, ("match",)),
    "replan_local.host.progress._DID_YOU_MEAN": (1_000, ("search",)),
    "replan_local.expressions.": (500, None),
}
# What reads only texts that we wrote ourselves: our prompts.
_OWN = ("replan.prompts.sections._SECTION",)


@pytest.fixture(scope="module")
def patterns() -> list[Found]:
    return [
        found
        for package in (replan, replan_local)
        for found in patterns_of(package, without="replan.testing")
        if found.where not in _OWN
    ]


def test_the_patterns_of_the_packages_are_found(patterns: list[Found]) -> None:
    names = {found.where for found in patterns}

    assert len(names) > 200
    assert {
        "replan.plan.markdown.title._NUMBER",
        "replan_local.host.progress._DID_YOU_MEAN",
    } <= names


@pytest.mark.parametrize("part", range(_PARTS))
def test_no_pattern_is_slow_at_the_largest_text_that_it_reads(
    patterns: list[Found], part: int
) -> None:
    slow = [
        f"{found.where}.{method}: {text[:40]!r} … {text[-4:]!r} ({len(text)} characters)"
        for found in patterns[part::_PARTS]
        for method, text in _slow_texts(found)
    ]

    assert slow == []


def _slow_texts(found: Found) -> list[tuple[str, str]]:
    """Give a text that each method is slow on; short ones go first, for some would never end."""
    length, methods = _reads(found)
    slow: list[tuple[str, str]] = []
    for method in methods:
        for text in _pumped(found, _SHORT):
            if _is_slow(found, method, text):
                slow.append((method, text))
                break
        else:
            slow += _slow_at(found, method, length)
    return slow


def _slow_at(found: Found, method: str, length: int) -> list[tuple[str, str]]:
    """Pump what was slowest in the middle up to the whole length."""
    medium = _pumped(found, min(_MEDIUM, length))
    times: list[float] = []
    for text in medium:
        times.append(_seconds(found, method, text))
        if times[-1] > _SECONDS and _is_slow(found, method, text):
            return [(method, text)]
    slowest = sorted(range(len(medium)), key=times.__getitem__)[-_SLOWEST:]
    long = _pumped(found, length)
    return [(method, long[at]) for at in slowest if _is_slow(found, method, long[at])][:1]


def _pumped(found: Found, length: int) -> list[str]:
    return list(pumped(found.pattern, length))


def _reads(found: Found) -> tuple[int, tuple[str, ...]]:
    for name, (length, methods) in _READS.items():
        if found.where.startswith(name):
            return length, methods or found.methods
    return STEP_LINE, found.methods


def _is_slow(found: Found, method: str, text: str) -> bool:
    """Whether it is slow again and again: another process can make it slow once."""
    least = _least_seconds(found, method, text)
    half = text[: len(text) // 2] + text[-2:]
    return least > _TOO_LONG or (
        least > _SECONDS and least > 3 * _least_seconds(found, method, half)
    )


def _least_seconds(found: Found, method: str, text: str) -> float:
    least = float("inf")
    for _ in range(3):
        least = min(least, _seconds(found, method, text))
        if least <= _SECONDS:
            break
    return least


def _seconds(found: Found, method: str, text: str) -> float:
    started = time.process_time()
    if method == "sub":
        found.pattern.sub("", text)
    elif method == "finditer":
        list(found.pattern.finditer(text))
    else:
        getattr(found.pattern, method)(text)
    return time.process_time() - started
