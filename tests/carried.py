"""The run in a context, opened for tests that change it, and put back."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from replan.sessions.carried_run import packed_run, unpacked_run


@contextmanager
def opened_run(context: dict[str, Any]) -> Iterator[Any]:
    """Yield the JSON of the run of a context, and put what became of it back."""
    carried = context["project_state"]["run"]
    run = unpacked_run(carried["packed"])
    yield run
    carried["packed"] = packed_run(run)


def run_in(context: dict[str, Any]) -> Any:
    """The JSON of the run of a context."""
    return unpacked_run(context["project_state"]["run"]["packed"])
