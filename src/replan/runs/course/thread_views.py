"""The status of the threads of a run's pipelines: their phases, and the sub-threads below them."""

import re
from collections.abc import Iterator, Mapping

from replan.ports.storage import Storage
from replan.state.pipeline.thread_rows import thread_from
from replan.state.pipeline.threads import HISTORY, Thread
from replan.threads.phases.suggestions import next_phase
from replan.values import Value

_OF_STEP = re.compile(r"(\d+)\.([^/]*)/(.+)", re.DOTALL)


class ThreadView(Value):
    """The status of a thread of a step, or a sub-thread of it."""

    step_id: int
    specialist: str  # the specialist that is a pipeline
    depth: int  # how many threads are above it
    phase: str  # the phase in which it continues
    phases: tuple[str, ...]  # the phases of its messages, in their order
    messages: int  # how many messages it has
    is_replaced: bool = False  # whether a retry has put another one in its place
    error: str = ""  # why its last work failed; else empty


async def thread_views(storage: Storage, run_id: str) -> tuple[ThreadView, ...]:
    """Read the status of the threads of a run: each above its sub-threads, steps in their order."""
    newest: dict[tuple[int, str], Thread] = {}
    threads = await storage.threads.rows(run_id)
    for thread_id in sorted(threads, key=_order):
        found = _OF_STEP.fullmatch(thread_id.removeprefix(f"{run_id}/"))
        if found is not None:
            newest[int(found[1]), found[3]] = thread_from(threads[thread_id])
    return tuple(
        view
        for (step, specialist), thread in newest.items()
        for view in _views({"step_id": step, "specialist": specialist}, thread)
    )


def _order(thread_id: str) -> list[tuple[int, str]]:
    """Sort ids with numbers in them, so that generation 10 comes after 9."""
    return [(int(part or 0), text) for text, part in re.findall(r"(\D*)(\d*)", thread_id)]


def _views(
    whose: Mapping[str, int | str], thread: Thread, depth: int = 0, *, is_replaced: bool = False
) -> Iterator[ThreadView]:
    said = [str(each.meta["phase"]) for each in thread.messages if "phase" in each.meta]
    yield ThreadView.model_validate(
        {
            **whose,
            "depth": depth,
            "phase": next_phase(thread),
            "phases": tuple(dict.fromkeys(said)),
            "messages": len(thread.messages),
            "is_replaced": is_replaced,
            "error": thread.error,
        }
    )
    for path, below in thread.sub_threads():
        is_old = is_replaced or HISTORY in path.split(".")
        yield from _views(whose, below, depth + 1, is_replaced=is_old)
