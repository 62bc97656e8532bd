"""`replan show`: a stored or exported run: what it did, when, at what price, and why."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from replan.base.texts.signs import harmless
from replan.cli.shared import options
from replan.cli.shared.process import as_command, location_from
from replan.errors import InputError
from replan.user_files.named import LAST, MEMORY, is_file, refusing_damaged

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from replan.events.types import Event
    from replan.log.report import RunReport
    from replan.log.step_reports import AttemptReport
    from replan.runs.reports import WholeReport
    from replan.state.results import SpecialistResult
    from replan.user_files.storage_location import StorageLocation

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
    attempt: Annotated[
        int | None, typer.Option("--attempt", help="Show only the attempts with this number.")
    ] = None
    timeline: Annotated[
        bool, typer.Option("--timeline", help="Show when each step ran, waited and failed.")
    ] = False
    prompts: Annotated[
        bool, typer.Option("--prompts", help="Show the prompts and replies of models.")
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
        given = {
            "--step": self.step is not None,
            "--attempts": self.attempts,
            "--attempt": self.attempt is not None,
            "--prompts": self.prompts,
            "--json": self.as_json,
            "--timeline": self.timeline,
            "--markdown": self.markdown,
        }
        named = [name for name, is_given in given.items() if is_given]
        for alone in ("--timeline", "--markdown"):
            if alone in named and len(named) > 1:
                others = ", ".join(name for name in named if name != alone)
                raise InputError(f"{alone} always shows the whole run. Leave out {others}.")
        if self.attempt is not None and self.step is None:
            raise InputError("--attempt needs a step. Name it with --step.")

    @property
    def is_overview(self) -> bool:
        """Whether it is the first view."""
        return self.is_whole and not self.timeline

    @property
    def is_whole(self) -> bool:
        """Whether it is of the whole run."""
        return self.step is None and not self.attempts and not self.prompts


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
    view.check()
    if view.as_json or view.markdown:
        run = _load(name, location, view)
        with refusing_damaged(name):
            output.write(_whole_text(run, view))
        return
    from replan.views.paged import paged
    from replan.views.rendered import console_on

    with paged(console_on(output), output, plain=view.plain) as write:
        if not view.is_whole:
            run = _load(name, location, view)
            with refusing_damaged(name):
                write(_text(_part_lines(run, view)))
            return
        report = _read_rows(name, location) or _load(name, location, view)
        with refusing_damaged(name):
            write(_text(_report_lines(report, view, _width(output, view))))
            if view.is_overview and report.answer:
                write(_text(["", *_failed_lines(report), "answer:"]))
                write(_answer(report.answer, output, plain=view.plain))
            if view.is_overview and not is_file(name):
                write(_text(_next_lines(report, location)))


def _text(lines: Iterable[str]) -> str:
    return harmless("".join(f"{line}\n" for line in lines))


def _read_rows(name: str, location: StorageLocation) -> RunReport | None:
    """The report of a run that is over, if it is in a file here; its state is not needed."""
    from replan.storage.report_rows import report_in_file

    if location.key or location.where == MEMORY or "://" in location.where or is_file(name):
        return None
    return report_in_file(Path(location.where).expanduser(), None if name == LAST else name)


def _load(name: str, location: StorageLocation, view: View) -> WholeReport:
    from replan.user_files.whole import load_run

    run = asyncio.run(load_run(name, location, lambda run: _events_with_long_texts(run, view)))
    if view.step is not None:
        _check_step(run, view.step)
    if view.attempt is not None and not _attempts(run, view)[0]:
        tried = max((attempt.entry.number for attempt in run.attempts_of(view.step)), default=0)
        there = f"It has 1 to {tried}." if tried else "It has none yet."
        raise InputError(f"Step {view.step} has no attempt {view.attempt}. {there}")
    return run


def _whole_text(run: WholeReport, view: View) -> str:
    if view.as_json:
        return f"{json.dumps(_record(run, view), default=str)}\n"
    from replan.views.run.markdown_report import markdown_report

    return markdown_report(run)


def _events_with_long_texts(run: WholeReport, view: View) -> Iterable[Event]:
    """The events whose long texts are shown."""
    if view.is_overview:
        from replan.views.run.evidence import replies_before

        return tuple(replies_before(run))
    if view.timeline:
        return ()
    kinds = ("tool_",) if not view.prompts else ("tool_", "model_", "memory_")
    return [event for event in _events_of(run, view) if event.type.startswith(kinds)]


def _check_step(run: WholeReport, step: int) -> None:
    steps_by_id = run.by_id
    if step not in steps_by_id:
        there = (
            f"It has {min(steps_by_id)} to {max(steps_by_id)}."
            if steps_by_id
            else "It has no plan."
        )
        raise InputError(f"There is no step {step} in this run. {there}")


def _events_of(run: WholeReport, view: View) -> list[Event]:
    wanted = {"step_id": view.step, "attempt": view.attempt}
    wanted = {name: value for name, value in wanted.items() if value is not None}
    return [e for e in run.events if all(getattr(e, n, None) == v for n, v in wanted.items())]


def _attempts(
    run: WholeReport, view: View
) -> tuple[Sequence[AttemptReport], Sequence[SpecialistResult]]:
    tried = run.attempts_of(view.step)
    newest = {attempt.entry.specialist: attempt for attempt in tried}
    results = [result for result in run.results if result.step_id == view.step]
    if view.attempt is None:
        return tried if view.attempts else list(newest.values()), results
    found = [attempt for attempt in tried if attempt.entry.number == view.attempt]
    # The result is that of the newest attempt.
    return found, [result for result in results if newest.get(result.specialist_name) in found]


def _width(output: TextIO, view: View) -> int:
    """The cells of a line; in a pipe only a timeline is bound to them."""
    if output.isatty() or view.timeline:
        return max(_NARROWEST, shutil.get_terminal_size((_WIDE, 24)).columns - output.isatty())
    return sys.maxsize


def _answer(text: str, output: TextIO, *, plain: bool) -> str:
    from replan.base.texts.signs import harmless
    from replan.views.rendered import console_on, print_markdown

    if plain or not output.isatty():
        lines = (f"  {line}".rstrip() for line in text.strip().splitlines())
        return harmless("".join(f"{line}\n" for line in lines))
    console = console_on(output)
    with console.capture() as captured:
        print_markdown(console, text, indent=2)
    return captured.get()


def _report_lines(report: RunReport, view: View, width: int) -> list[str]:
    from replan.views.run.overview import overview
    from replan.views.run.timeline import timeline

    return (timeline if view.timeline else overview)(report, width)


def _failed_lines(report: RunReport) -> list[str]:
    from replan.views.run.error_lines import failed_above

    return failed_above(report)


def _next_lines(report: RunReport, location: StorageLocation) -> list[str]:
    from replan.views.run.next_steps import next_lines

    lines = next_lines(report, location.option)
    return ["", "next:", *(f"  {line}" for line in lines)] if lines else []


def _part_lines(run: WholeReport, view: View) -> list[str]:
    """The lines of a view that is not of the whole run."""
    from replan.views.run.attempt_calls import attempts_lines, step_lines
    from replan.views.run.prompts import prompts_lines

    if view.prompts:
        return prompts_lines(run, _events_of(run, view))
    head: list[str] = [] if view.step is None else step_lines(run, view.step)
    return [*head, *attempts_lines(run, *_attempts(run, view))] or ["No step was attempted yet."]


def _record(run: WholeReport, view: View) -> dict[str, Any]:
    from replan.views.run.attempt_calls import attempts_record, step_record
    from replan.views.run.prompts import prompts_record
    from replan.views.run.run_record import run_record

    if view.prompts:
        return prompts_record(run, _events_of(run, view))
    if not view.is_whole:
        head: dict[str, Any] = {} if view.step is None else step_record(run, view.step)
        return head | attempts_record(run, *_attempts(run, view))
    return run_record(run)
