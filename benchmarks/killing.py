"""Processes that get SIGKILL at some moment, forked from one that has the imports done."""

import multiprocessing
from collections.abc import Callable, Iterable
from multiprocessing.process import BaseProcess
from typing import Any

PRELOADED = (
    "replan",
    "replan.assembly.graphs",
    "replan.runs.running",
    "replan.testing",
    "replan.storage.opening",
    "replan.storage.postgres",
    "replan.storage.advisory_holds",
)
"""What a process that works with a storage imports."""


def processes(preloaded: Iterable[str]) -> Any:
    """Give what starts processes that have these modules imported already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*preloaded, *PRELOADED])
    return context


def killed_once(
    work: Callable[..., None],
    given: tuple[Any, ...],
    wait: Callable[[BaseProcess], object],
    preloaded: Iterable[str],
) -> int | None:
    """Do a part of a work in a process, which is killed; its exit code, None if it was killed.

    Args:
        work: What the process does.
        given: What it is given.
        wait: Waits for the process to end, or for the moment to kill it.
        preloaded: Further modules that the process has imported already.
    """
    process = processes(preloaded).Process(target=work, args=given)
    process.start()
    wait(process)
    process.kill()
    process.join()
    code = process.exitcode
    return None if code is None or code < 0 else code
