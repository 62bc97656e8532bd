"""`replan show`: a stored or exported run: what it did, when, at what price, and why."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated, Any, TextIO, cast

import typer

from replan.base.errors import InputError
from replan.base.texts.signs import harmless
from replan.cli.shared import options
from replan.cli.shared.process import as_command, location_from
from replan.cli.user_files.named import LAST, is_file, refusing_damaged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from replan.cli.user_files.storage_location import StorageLocation
    from replan.log.events.types import Event
    from replan.log.report import RunReport
    from replan.runs.reports import WholeReport

_WIDE, _NARROWEST = 100, 20


@dataclass(frozen=True, kw_only=True)
class View:
    """The parts of a run to show, and how."""

    step: Annotated[
        int | None,
        typer.Option(
            "--step", "-s", help="Show one step: its newest attempt and its whole result."
        ),
    ] = None
    attempts: Annotated[
        bool,
        typer.Option("--attempts", help="Show every attempt, with its model and tool calls."),
    ] = False
    timeline: Annotated[
        bool, typer.Option("--timeline", help="Show when each step ran, waited and failed.")
    ] = False
    prompts: Annotated[
        bool, typer.Option("--prompts", help="As --attempts, with the prompts and replies.")
    ] = False
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print a report in Markdown, with whole results.")
    ] = False
    as_json: options.Json = False
    plain: options.Plain = False

    def check(self) -> None:
        """Refuse options that do not go together.

        Raises:
            InputError: One of them would be ignored.
        """
        views = {
            "--step": self.step is not None,
            "--attempts": self.attempts,
            "--prompts": self.prompts,
            "--json": self.as_json,
            "--timeline": self.timeline,
            "--markdown": self.markdown,
        }
        named = [name for name, is_given in views.items() if is_given]
        for alone in ("--timeline", "--markdown"):
            if alone in named and len(named) > 1:
                others = ", ".join(name for name in named if name != alone)
                raise InputError(f"{alone} always shows the whole run. Leave out {others}.")

    @property
    def is_whole(self) -> bool:
        """Whether it is of the whole run."""
        return self.step is None and not self.attempts and not self.prompts

    @property
    def is_for_people(self) -> bool:
        """Whether it is made for a terminal."""
        return not self.as_json and not self.markdown


@as_command
@options.with_options("view", View)
def show(
    run_id: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="The id of a run or a prefix of it, `last`, or the file of an export.",
        ),
    ],
    *,
    storage: options.Storage = None,
    view: View,
) -> None:
    """Show a run: how it ended and why, each step with time and cost, who decided, its answer."""
    show_run(run_id, location_from(storage), sys.stdout, view)


def show_run(name: str, location: StorageLocation, output: TextIO, view: View) -> None:
    """Write the parts of a run to show."""
    from replan.views.paged import paged
    from replan.views.rendered import console_on

    view.check()
    is_plain = view.plain or not view.is_for_people
    with paged(console_on(output), output, plain=is_plain) as write:
        is_in_rows = view.is_whole and view.is_for_people
        report = (_read_rows(name, location) if is_in_rows else None) or _load(name, location, view)
        with refusing_damaged(name):
            for text in _texts(report, view, output):
                write(text)
            if is_in_rows and not view.timeline and not is_file(name):
                write(_text(_next_lines(report, location)))


def _text(lines: Iterable[str]) -> str:
    return harmless("".join(f"{line}\n" for line in lines))


def _read_rows(name: str, location: StorageLocation) -> RunReport | None:
    """The report of a run that is over, if it is in a file here; its state is not needed."""
    from replan.storage.report_rows import report_in_file

    if location.key or location.file is None or is_file(name):
        return None
    return report_in_file(location.file, None if name == LAST else name)


def _load(name: str, location: StorageLocation, view: View) -> WholeReport:
    from replan.cli.user_files.whole import load_run

    run = asyncio.run(load_run(name, location, lambda run: _events_with_long_texts(run, view)))
    if view.step is not None and view.step not in run.by_id:
        there = f"It has {min(run.by_id)} to {max(run.by_id)}." if run.by_id else "It has no plan."
        raise InputError(f"There is no step {view.step} in this run. {there}")
    return run


def _events_with_long_texts(run: WholeReport, view: View) -> Iterable[Event]:
    """The events whose long texts are shown."""
    if view.timeline:
        return ()
    if view.is_whole and not view.markdown:
        from replan.views.run.evidence import replies_before

        return tuple(replies_before(run))
    kinds = ("tool_",) if not view.prompts else ("tool_", "model_", "memory_")
    return [event for event in _events_of(run, view) if event.type.startswith(kinds)]


def _events_of(run: WholeReport, view: View) -> list[Event]:
    return [e for e in run.events if view.step in (None, getattr(e, "step_id", None))]


def _texts(report: RunReport, view: View, output: TextIO) -> Iterator[str]:
    """The texts of a view; what a terminal draws is made harmless already."""
    from replan.views.cells import width_of

    width = max(_NARROWEST, width_of(output))
    if view.as_json:
        yield f"{json.dumps(_record(cast('WholeReport', report), view), default=str)}\n"
    elif view.markdown:
        from replan.views.run.markdown_report import markdown_report

        yield markdown_report(cast("WholeReport", report))
    elif view.timeline:
        from replan.views.run.timeline import timeline

        # In a pipe, too, it is as wide as something.
        columns = max(_NARROWEST, get_terminal_size((_WIDE, 24)).columns)
        yield _text(timeline(report, min(width, columns)))
    elif not view.is_whole:
        yield _text(_part_lines(cast("WholeReport", report), view))
    else:
        from replan.views.run.error_lines import failed_above
        from replan.views.run.overview import overview

        yield _text(overview(report, width))
        if report.answer:
            yield _text(["", *failed_above(report), "answer:"])
            yield _answer(report.answer, output, plain=view.plain)


def _answer(text: str, output: TextIO, *, plain: bool) -> str:
    from replan.views.rendered import console_on, print_markdown

    if plain or not output.isatty():
        return _text(f"  {line}".rstrip() for line in text.strip().splitlines())
    console = console_on(output)
    with console.capture() as captured:
        print_markdown(console, text, indent=2)
    return captured.get()


def _next_lines(report: RunReport, location: StorageLocation) -> list[str]:
    from replan.views.run.next_steps import next_lines

    lines = next_lines(report, location.option)
    return ["", "next:", *(f"  {line}" for line in lines)] if lines else []


def _part_lines(run: WholeReport, view: View) -> list[str]:
    """The lines of a view that is not of the whole run."""
    from replan.views.run.attempts import attempts_lines, newest_of, step_lines

    head: list[str] = [] if view.step is None else step_lines(run, view.step)
    tried = run.attempts_of(view.step)
    lines = attempts_lines(
        run,
        tried if view.attempts or view.prompts else newest_of(tried),
        [result for result in run.results if result.step_id == view.step],
        has_host=view.step is None,
        has_prompts=view.prompts,
    )
    return [*head, *lines] or ["No step was attempted yet."]


def _record(run: WholeReport, view: View) -> dict[str, Any]:
    from replan.views.run.attempts import (
        attempts_record,
        newest_of,
        prompts_record,
        step_record,
    )
    from replan.views.run.run_record import run_record

    if view.prompts:
        return prompts_record(run, _events_of(run, view))
    if view.is_whole:
        return run_record(run)
    head: dict[str, Any] = {} if view.step is None else step_record(run, view.step)
    tried = run.attempts_of(view.step)
    results = [result for result in run.results if result.step_id == view.step]
    return head | attempts_record(run, tried if view.attempts else newest_of(tried), results)
