"""The tests in several processes, which are forked once all tests are imported and collected.

`pytest --processes auto` starts two more than there are processors: tests also wait for processes
and disks. To import and collect everything costs as much as a tenth of the tests, in a fresh clone
a quarter, so it is done once: each worker of pytest-xdist would do it anew. A process takes the
next file when it comes to the last test of the one before: none is idle while there are files left,
and the fixtures of a module are made once.
"""

import os
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, groupby, pairwise
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import NoReturn

import pytest


@dataclass
class Fork:
    """A process that runs tests, and the one that it is at."""

    pid: int
    test: str = "before its first test"


def pytest_addoption(parser: pytest.Parser) -> None:
    told = "processes that run the tests, or 'auto'; 0 is none but pytest's own (the default)"
    parser.addoption("--processes", type=_number, default=0, metavar="NUMBER", help=told)


def _number(given: str) -> int:
    return (os.cpu_count() or 1) + 2 if given == "auto" else int(given)


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run all tests in forks, if there are to be any."""
    number = session.config.option.processes
    if number < 2 or session.testsfailed or session.config.option.collectonly:
        return None
    files = _files(session.items)
    forks: dict[Connection, Fork] = {}
    try:
        for at in range(number):
            connection, fork = _forked(session, at, [*forks])
            forks[connection] = fork
        _hand_out(session, files, forks)
    finally:
        for connection, fork in forks.items():
            _end(connection, fork)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
    return True


def _files(items: list[pytest.Item]) -> deque[slice]:
    """The stretches of the list that are of one file."""
    files, at = deque[slice](), 0
    for _, tests in groupby(items, key=lambda item: item.path):
        begin, at = at, at + len(list(tests))
        files.append(slice(begin, at))
    return files


def _hand_out(session: pytest.Session, files: deque[slice], forks: dict[Connection, Fork]) -> None:
    """Hear what the processes tell, and answer those that ask for a file, to the end."""
    while forks:
        for connection in wait(list(forks)):
            assert isinstance(connection, Connection)
            _hear(session, files, forks, connection)
        if session.shouldfail or session.shouldstop:
            # Whoever has a file gives up after the test that it is at.
            files.clear()
            for connection in forks:
                _answer(connection, None)


def _hear(
    session: pytest.Session,
    files: deque[slice],
    forks: dict[Connection, Fork],
    connection: Connection,
) -> None:
    try:
        told = connection.recv()
    except (EOFError, ConnectionResetError):
        fork = forks.pop(connection)
        if code := _end(connection, fork):
            session.shouldfail = f"its process ended with {code}: {fork.test}"
        return
    match told:
        case None:
            _answer(connection, files.popleft() if files else None)
        case str():
            forks[connection].test = told
        case _:
            _tell(session.config, told)


def _answer(connection: Connection, file: slice | None) -> None:
    with suppress(OSError):  # it has ended: this is read next
        connection.send(file)


def _tell(config: pytest.Config, data: dict[str, object]) -> None:
    report = config.hook.pytest_report_from_serializable(config=config, data=data)
    config.hook.pytest_runtest_logreport(report=report)
    if report.when == "teardown":
        config.hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)


def _end(connection: Connection, fork: Fork) -> int:
    """Wait until a process has ended, which it does when nobody listens; give its exit code."""
    connection.close()
    return os.waitstatus_to_exitcode(os.waitpid(fork.pid, 0)[1])


def _forked(session: pytest.Session, at: int, others: list[Connection]) -> tuple[Connection, Fork]:
    assert threading.active_count() == 1, threading.enumerate()
    ours, theirs = Pipe()
    pid = os.fork()
    if not pid:
        for connection in (ours, *others):
            connection.close()
        _work(session, at, theirs)
    theirs.close()
    return ours, Fork(pid)


def _work(session: pytest.Session, at: int, connection: Connection) -> NoReturn:
    """Run what is handed out, in the process that was forked for it."""
    code = 1
    try:
        _be_alone(session.config, at)
        session.config.pluginmanager.register(_Teller(session.config, connection))
        handed_out = _handed_out(session.items, connection)
        for item, following in pairwise(chain(handed_out, [None])):
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        code = 0
    except (BrokenPipeError, KeyboardInterrupt):
        code = 0  # nobody listens any more
    finally:
        os._exit(code)


def _be_alone(config: pytest.Config, at: int) -> None:
    """Share no output and no folder with other processes."""
    capture = config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    capture.stop_global_capturing()
    # The one that started this says how the tests went.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    capture.start_global_capturing()
    capture.suspend_global_capture()
    folders = config._tmp_path_factory  # noqa: SLF001 - nothing public hands it out before a test
    folders._basetemp = folders.mktemp(f"process-{at}-")  # noqa: SLF001


def _handed_out(items: list[pytest.Item], connection: Connection) -> Iterator[pytest.Item]:
    """The tests of one file after the other; the next one is asked for when it is needed."""
    while True:
        connection.send(None)
        if (file := connection.recv()) is None:
            return
        for item in items[file]:
            if connection.poll():  # whoever hands out has stopped
                return
            yield item


class _Teller:
    """Tells which test begins, and how each one went."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self._config = config
        self._connection = connection

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._connection.send(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        hook = self._config.hook
        told = hook.pytest_report_to_serializable(config=self._config, report=report)
        self._connection.send(told)
