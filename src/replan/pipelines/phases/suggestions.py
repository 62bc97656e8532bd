"""The phase that follows: suggested with the work of a phase, applied before the next work."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from replan.base.errors import PhaseError, ThreadError
from replan.log.events.types import PhaseEntered
from replan.pipelines.task import Task
from replan.state.pipeline.threads import Thread, require_sub_thread

SUGGESTION = "_phase_update_suggestion"
"""Where the settings of a thread have the suggested phase."""

ROUND = "round"
"""Where `brief_status` counts the phases that were entered, from 1, and messages name theirs."""


def thread_of(task: Task, thread: Thread) -> Thread:
    """Return the thread that a task is about: the main thread, or a sub-thread of it.

    Raises:
        SubThreadPathError: Its path leads to no sub-thread.
    """
    path = task.sub_thread_path
    return thread if path is None else require_sub_thread(thread, path)


def round_of(thread: Thread) -> int:
    """Count the phases that a thread has entered, from 1."""
    return int(thread.status.get(ROUND, 1))


def suggested_phase(thread: Thread) -> str | None:
    """Return the phase that is suggested for a thread; None if there is none."""
    found: Any = thread.settings.get(SUGGESTION)
    if found is None:
        return None
    is_wrong = f"is of type {type(found).__name__}"
    if isinstance(found, Mapping):
        phase: Any = cast("Mapping[str, Any]", found).get("phase")
        if isinstance(phase, str):
            return phase
        is_wrong = "has no phase"
    fix = "Suggest a phase with Response(text, phase_suggestion=...)."
    raise ThreadError(thread.id, f"its {SUGGESTION} {is_wrong}", fix)


def next_phase(thread: Thread) -> str:
    """Return the phase in which a thread continues."""
    return suggested_phase(thread) or thread.phase


def take_suggestion(task: Task, working_thread: Thread, phase: str | None) -> None:
    """Take the phase that a response suggests, unless one is suggested already."""
    if phase and suggested_phase(working_thread) is None:
        working_thread.settings[SUGGESTION] = {"phase": phase, "by": task.id}


async def store_suggestion(task: Task, thread: Thread, phase: str) -> None:
    """Store a suggestion with the thread that a task is about."""
    working_thread = thread_of(task, thread)
    working_thread.settings[SUGGESTION] = {"phase": phase, "by": task.id}
    repository = task.host_utils.thread_repository
    if working_thread is thread:
        await repository.update_thread_settings(thread, thread.settings)
    else:
        await repository.save_thread(thread)


async def enter_suggested_phase(task: Task, thread: Thread) -> None:
    """Enter the suggested phase, and store that; what is done again stays in its phase."""
    working_thread = thread_of(task, thread)
    found = working_thread.settings.pop(SUGGESTION, None)
    if found is None:
        return
    # One of the task itself was made before its message was stored: the task is done again.
    is_own = working_thread is thread and bool(task.id) and found.get("by") == task.id
    if not (task.is_retry or is_own):
        working_thread.set_status(phase=found["phase"], **{ROUND: round_of(working_thread) + 1})
    # Were it lost with the power, the suggestion would be there, and lead to the same phase.
    await task.host_utils.thread_repository.save_thread(thread, lasting=False)


@contextmanager
def phase_unchanged(task: Task, thread: Thread, by: str) -> Generator[None]:
    """Let foreign code work that must not change where a thread is: it suggests phases."""
    threads = {sub_thread.id: sub_thread for sub_thread in (thread, thread_of(task, thread))}
    before = {
        name: (thread.phase, round_of(thread), dict(thread.status))
        for name, thread in threads.items()
    }
    try:
        yield
    finally:
        changed = [
            thread for name, thread in threads.items() if not _is_unchanged(thread, before[name])
        ]
        for sub_thread in changed:
            sub_thread.settings["brief_status"] = before[sub_thread.id][2]
    for sub_thread in changed:
        problem = f"{by} has changed brief_status of the thread '{sub_thread.id}'"
        fix = "Suggest the phase that follows: Response(text, phase_suggestion=...)."
        raise PhaseError(thread_of(task, thread).id, sub_thread.phase, problem, fix)


def _is_unchanged(thread: Thread, before: tuple[str, int, object]) -> bool:
    try:
        return (thread.phase, round_of(thread)) == before[:2]
    except (ThreadError, TypeError, ValueError):
        return False


def report_phase(thread: Thread, task: Task) -> None:
    """Report that a thread works in its phase."""
    working_thread = thread_of(task, thread)
    task.host_utils.tell(PhaseEntered, phase=working_thread.phase, path=task.sub_thread_path or "")


def check_suggestion(thread: Thread, phase: str, known: tuple[str, ...], by: str) -> None:
    """Refuse a phase that a handler does not name as one that may follow."""
    if phase not in known:
        problem = f"{by} suggests '{phase}', which it does not name as a phase that may follow"
        fix = f"Name it in other_phases, or suggest one of: {', '.join(known)}."
        raise PhaseError(thread.id, thread.phase, problem, fix)
