"""`replan show`: a kept run, with its plan, who changed it and why, its tries and its answer."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TextIO, cast

import typer

from replan.cli.options import JsonOption, PlainOption, RunArgument, StorageOption
from replan.cli.process import end_with, place
from replan.cli.runs import when
from replan.cli.views.cells import counted, harmless, one_line

if TYPE_CHECKING:
    from pydantic import JsonValue

    from replan.cli.kept.place import Place
    from replan.plan.model import PlanUpdate
    from replan.ports.journal import LedgerEntry, Spending
    from replan.ports.run_book import LoggedEvent
    from replan.runs.looking import RunView
    from replan.state.results import Artifact
    from replan.state.usage import TokenCount

_TYPE_WIDTH = 21


@dataclass(frozen=True, kw_only=True)
class _Whole:
    """A run with all that is kept of it."""

    run: RunView
    ledger: Sequence[LedgerEntry]
    spent: Mapping[str, Spending]
    events: Sequence[LoggedEvent]

    @property
    def history(self) -> tuple[PlanUpdate, ...]:
        plan = self.run.plan
        return plan.update_history if plan else ()

    @property
    def answer(self) -> str:
        message = self.run.state.get("final_answer")
        return "" if message is None else message.text

    @property
    def artifacts(self) -> list[Artifact]:
        results = self.run.state.get("current_specialist_results", {}).values()
        return list({made.path: made for each in results for made in each.artifacts}.values())


def show(
    run_id: RunArgument,
    *,
    storage: StorageOption = None,
    as_json: JsonOption = False,
    plain: PlainOption = False,
    step: Annotated[
        int | None,
        typer.Option("--step", "-s", help="Show one step: its newest try, its whole result."),
    ] = None,
    attempts: Annotated[
        bool, typer.Option("--attempts", help="Show every try, with its calls of models and tools.")
    ] = False,
) -> None:
    """Show a run: its plan with marks, who changed it, tries, events, what it used, its answer."""

    def shown() -> int:
        if step is None and not attempts:
            return show_run(run_id, place(storage), sys.stdout, as_json=as_json, plain=plain)
        from replan.cli.attempts import show_attempts

        return show_attempts(
            run_id, place(storage), sys.stdout, step=step, earlier=attempts, as_json=as_json
        )

    end_with(shown)


def show_run(prefix: str, place: Place, output: TextIO, *, as_json: bool, plain: bool) -> int:
    """Write all that is kept of a run."""
    whole = asyncio.run(_found(prefix, place))
    if as_json:
        output.write(f"{json.dumps(_record(whole), default=str)}\n")
        return 0
    output.write(harmless("".join(f"{line}\n" for line in _lines(whole))))
    if whole.answer:
        output.write("\nanswer:\n")
        _write_answer(whole.answer, output, plain=plain or not output.isatty())
    return 0


def _write_answer(text: str, output: TextIO, *, plain: bool) -> None:
    if plain:
        lines = (f"  {line}".rstrip() for line in text.strip().splitlines())
        output.write(harmless("".join(f"{line}\n" for line in lines)))
        return
    from replan.cli.views.rendered import console_on, print_markdown

    print_markdown(console_on(output), text, indent=2)


async def _found(prefix: str, place: Place) -> _Whole:
    from replan.assembly import viewer
    from replan.cli.kept.place import found, now, opened
    from replan.runs.looking import seen

    async with opened(place) as storage:
        record = await found(storage.runs, prefix)
        return _Whole(
            run=await seen(viewer(storage), storage, record, now()),
            ledger=await storage.journal.ledger(record.run_id),
            spent=await storage.journal.spent(record.run_id),
            events=await storage.runs.events(record.run_id),
        )


def _record(whole: _Whole) -> dict[str, object]:
    from replan.state.usage import Usage

    run, plan = whole.run, whole.run.plan
    record = run.record
    return {
        "run_id": record.run_id,
        "title": record.title,
        "outcome": run.outcome,
        "limit_reached": run.state.get("limit_reached", ""),
        "warnings": run.state.get("warnings", []),
        "started_at": record.started_at.isoformat(),
        "updated_at": record.updated_at.isoformat(),
        "labels": record.labels,
        "order": record.order,
        "plan": None if plan is None else {"version": plan.version, "markdown": plan.content},
        "questions": [
            {"key": ask.key, "kind": ask.kind, "text": ask.text, "details": ask.details}
            for ask in run.waiting
        ],
        "history": [update.model_dump(mode="json") for update in whole.history],
        "ledger": [entry.model_dump(mode="json", exclude={"run_id"}) for entry in whole.ledger],
        "usage": run.state.get("usage", Usage()).model_dump(mode="json"),
        "spent": {scope: spent.model_dump() for scope, spent in whole.spent.items()},
        "events": [{**_fields_of(logged), "seq": logged.seq} for logged in whole.events],
        "artifacts": [artifact.model_dump(mode="json") for artifact in whole.artifacts],
        "answer": whole.answer,
    }


def _lines(whole: _Whole) -> list[str]:
    from replan.cli.views.open_asks import told

    record = whole.run.record
    began, heard = when(record.started_at), when(record.updated_at)
    lines = [
        f"run {record.run_id}",
        f"{whole.run.outcome}, began {began}, last heard of {heard}",
        f"title: {one_line(record.title)}",
        *(f"label: {name}={one_line(value)}" for name, value in record.labels.items()),
    ]
    sections = {
        "plan": _plan_lines(whole),
        "waits for": [f"{ask.key}: {told(ask)}" for ask in whole.run.waiting],
        "history": [line for update in whole.history for line in _update_lines(update)],
        "tries": [_try_line(entry) for entry in whole.ledger],
        "events": [_event_line(event) for event in whole.events],
        "used": _usage_lines(whole),
        "warnings": [one_line(each) for each in whole.run.state.get("warnings", [])],
        "files": [one_line(f"{made.path} {made.title}") for made in whole.artifacts],
    }
    for title, content in sections.items():
        if content:
            lines += ["", f"{title}:", *(f"  {line}".rstrip() for line in content)]
    return lines


def _plan_lines(whole: _Whole) -> list[str]:
    plan = whole.run.plan
    return [] if plan is None else plan.content.strip().splitlines()


def _update_lines(update: PlanUpdate) -> list[str]:
    """Who changed the plan when and why, then what."""
    why = f": {one_line(update.description)}" if update.description else ""
    head = f"version {update.version}, {when(update.timestamp)}, by {update.by}{why}"
    return [head, *(f"  {one_line(line)}" for line in _changes(update.changes))]


def _changes(changes: Mapping[str, JsonValue]) -> list[str]:
    return [
        f"{name}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in changes.items()
        if value
    ]


def _try_line(entry: LedgerEntry) -> str:
    took = "" if entry.ended_at is None else f", {_seconds(entry):.1f} s"
    error = f": {one_line(entry.error)}" if entry.error else ""
    began = entry.started_at.astimezone().strftime("%H:%M:%S")
    who = f"step {entry.step_id} {entry.specialist}, try {entry.number}"
    return f"{began} {who}: {entry.outcome}{took}{error}"


def _seconds(entry: LedgerEntry) -> float:
    ended = entry.ended_at or entry.started_at
    return (ended - entry.started_at).total_seconds()


def _fields_of(logged: LoggedEvent) -> Mapping[str, JsonValue]:
    return cast("Mapping[str, JsonValue]", logged.event)


def _event_line(logged: LoggedEvent) -> str:
    """An event in one line: when, what, and the rest as `name=value`."""
    fields = dict(_fields_of(logged))
    moment, kind = str(fields.pop("at", ""))[11:19], str(fields.pop("type", ""))
    fields.pop("seq", None)
    rest = [
        f"{name}={one_line(str(value))}" for name, value in fields.items() if value not in ("", {})
    ]
    return f"{moment} {kind:<{_TYPE_WIDTH}} {' '.join(rest)}".rstrip()


def _usage_lines(whole: _Whole) -> list[str]:
    from replan.ports.journal import Spending
    from replan.state.usage import Usage

    usage, lines = whole.run.state.get("usage", Usage()), list[str]()
    if usage.calls:
        lines = [_used(name, each) for name, each in {"in all": usage, **usage.by}.items()]
    charged = whole.spent.get("run", Spending())
    if charged.calls > usage.calls:
        # The state knows of a round when it is over; what was cut off is charged in full.
        cost = f", {charged.cost:g} of money" if charged.cost else ""
        told = f"{counted(charged.calls, 'model call')}, {counted(charged.tokens, 'token')}{cost}"
        lines.append(f"charged to its limits: {told}")
    return lines


def _used(name: str, used: TokenCount) -> str:
    from replan.cli.views.summary import money

    tokens = counted(used.total_tokens, "token")
    return f"{name}: {counted(used.calls, 'model call')}, {tokens}{money(used)}"
