"""The threads of pipelines as trees: each with its sub-threads below it."""

from collections.abc import Iterable
from dataclasses import dataclass

from replan.runs.course.thread_views import ThreadView


@dataclass(frozen=True, kw_only=True)
class ThreadTree:
    """A thread, and those below it."""

    thread: ThreadView
    below: tuple["ThreadTree", ...] = ()


def threads_of(views: Iterable[ThreadView], step: int | None = None) -> tuple[ThreadTree, ...]:
    """Put threads into trees: each comes before its sub-threads, as `thread_views` returns them."""
    waiting: list[tuple[ThreadView, list[ThreadTree]]] = []
    roots = list[ThreadTree]()

    def close(depth: int) -> None:
        while waiting and waiting[-1][0].depth >= depth:
            view, below = waiting.pop()
            place = waiting[-1][1] if waiting else roots
            place.append(ThreadTree(thread=view, below=tuple(below)))

    for view in views:
        if step in (None, view.step_id):
            close(view.depth)
            waiting.append((view, []))
    close(0)
    return tuple(roots)
