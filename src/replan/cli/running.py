"""Carry out one order of the terminal and tell how it went."""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, cast

from langchain_core.messages import HumanMessage

from replan.adapters.offline import OFFLINE_NOTICE
from replan.app import local_graph
from replan.cli.lines import Lines
from replan.errors import InputError, ReplanError, UsageError
from replan.events.types import Event, TaskCompleted
from replan.plan.document import PlanDocument
from replan.running import stream

GOOD, INCOMPLETE, WRONG_USE = 0, 1, 2
_GOOD_OUTCOMES = ("answered", "completed")


@dataclass(frozen=True, kw_only=True)
class Order:
    """What the terminal was asked to do."""

    task: str
    model: str = "offline"
    base_url: str | None = None
    directory: Path = Path()
    out: Path | None = None
    quiet: bool = False
    as_json: bool = False


def carry_out(order: Order, environment: Mapping[str, str], output: TextIO, errors: TextIO) -> int:
    """Run an order to its end and give the exit code.

    Raises:
        KeyboardInterrupt: The person at the terminal stopped it.
    """
    try:
        given = _input_of(order.task)
        graph = local_graph(
            directory=order.directory,
            out=order.out,
            model=order.model,
            base_url=order.base_url,
            environment=environment,
        )
        if order.model == "offline" and not (order.quiet or order.as_json):
            output.write(f"{OFFLINE_NOTICE}\n")
        outcome = asyncio.run(_told(graph, given, order, output))
    except UsageError as error:
        errors.write(f"replan: {error}\n")
        return WRONG_USE
    except ReplanError as error:
        errors.write(f"replan: {error}\n")
        return INCOMPLETE
    return GOOD if outcome in _GOOD_OUTCOMES else INCOMPLETE


def _input_of(task: str) -> dict[str, Any]:
    """The graph's input: a request, or a plan if the task names a Markdown file.

    Raises:
        InputError: The task is empty, or names a plan that cannot be read.
    """
    if not task.strip():
        raise InputError("The task is empty. Say what to do, or name a plan document.")
    if not task.casefold().endswith(".md") or "\n" in task:
        return {"messages": [HumanMessage(task)]}
    path = Path(task)
    if not path.is_file():
        if len(task.split()) > 1:
            return {"messages": [HumanMessage(task)]}
        raise InputError(f"There is no plan document '{task}'. Check the path.")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The plan document '{task}' cannot be read: {error}.") from error
    title = PlanDocument.recover(text).plan.title or f"Carry out the plan in {path.name}"
    return {"messages": [HumanMessage(title)], "plan": text}


async def _told(graph: Any, given: Mapping[str, Any], order: Order, output: TextIO) -> str:
    """Run the graph, write what happens, and give the outcome."""
    lines = Lines(workspace=order.directory, clock=time.monotonic, quiet=order.quiet)
    tell: Callable[[Event], str] = _as_json if order.as_json else lines.lines_of
    outcome = "failed"
    try:
        async with aclosing(cast("Any", stream(graph, given))) as events:
            async for event in events:
                output.write(tell(event))
                output.flush()
                if isinstance(event, TaskCompleted):
                    outcome = event.outcome
    except BaseException:
        output.write("" if order.as_json else lines.broken_off())
        output.flush()
        raise
    return outcome


def _as_json(event: Event) -> str:
    return event.model_dump_json() + "\n"
