"""Frozen values: their classes are built when they are first used, by whichever thread is first."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from replan.base.values import Value

THREADS = 8


@pytest.fixture
def hurried() -> Iterator[None]:
    """Threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("hurried")
def test_threads_may_use_a_class_of_values_for_the_first_time_at_once():
    barrier = Barrier(THREADS)

    def written(kind: type[Value]) -> str:
        barrier.wait()
        return kind(part={"number": 1}).model_dump_json()

    with ThreadPoolExecutor(THREADS) as threads:
        for _ in range(40):

            class Part(Value):
                number: int
                name: str = "one"

            class Whole(Value):
                part: Part

            texts = {*threads.map(written, [Whole] * THREADS)}

            assert texts == {'{"part":{"number":1,"name":"one"}}'}
