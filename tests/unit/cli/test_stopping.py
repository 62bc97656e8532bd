"""What signals do to a run."""

import asyncio
import signal
import threading

import pytest

from replan.cli.shared.signals import Stop, handling_signals


@pytest.fixture
def finished():
    return asyncio.Event()


@pytest.fixture
def stop(finished):
    return Stop(asyncio.Event(), finish=finished.set)


async def test_the_third_signal_is_the_systems(stop):
    with handling_signals(stop):
        stop.take(signal.SIGINT)
        hear = signal.getsignal(signal.SIGINT)
        hear(signal.SIGINT, None)
        assert signal.getsignal(signal.SIGINT) is hear
        hear(signal.SIGINT, None)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL


def test_another_thread_hears_no_signals(stop):
    before = signal.getsignal(signal.SIGINT)

    async def work():
        with handling_signals(stop):
            return signal.getsignal(signal.SIGINT)

    found = []
    thread = threading.Thread(target=lambda: found.append(asyncio.run(work())))
    thread.start()
    thread.join()
    assert found == [before]


async def test_ctrl_c_in_an_editor_is_meant_for_the_editor(stop):
    stop.is_editing = True
    stop.take(signal.SIGINT)
    assert (stop.code, stop.asked.is_set()) == (0, False)
    stop.take(signal.SIGTERM)
    assert (stop.code, stop.asked.is_set()) == (143, True)
