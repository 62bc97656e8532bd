"""The property tests that are chosen, again and again with new examples, until the time is up.

Loaded under HYPOTHESIS_PROFILE=fuzz. Each test gets the same share of the time.
"""

import time
from collections import Counter
from functools import wraps

import pytest
from hypothesis import is_hypothesis_test

SECONDS = 60.0

_examples: Counter[str] = Counter()


def _counted(name, test):
    @wraps(test)
    def counting(*args, **kwargs):
        _examples[name] += 1
        return test(*args, **kwargs)

    return counting


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests that draw examples, and count these."""
    items[:] = [item for item in items if is_hypothesis_test(item.obj)]
    for name, test in {item.nodeid.partition("[")[0]: item.obj for item in items}.items():
        _examples[name] = 0
        test.hypothesis.inner_test = _counted(name, test.hypothesis.inner_test)


def pytest_runtestloop(session: pytest.Session) -> bool:
    """Run whichever test had the least time so far."""
    spent = dict.fromkeys(session.items, 0.0)
    while sum(spent.values()) < SECONDS and not session.testsfailed:
        item, started = min(spent, key=spent.__getitem__), time.monotonic()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        spent[item] += time.monotonic() - started
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell what was fuzzed, and with how many examples."""
    terminalreporter.section(f"{_examples.total():,} examples")
    for name, number in sorted(_examples.items()):
        terminalreporter.line(f"{number:>9,}  {name}")
