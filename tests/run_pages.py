"""Runs that people act on, as pages have them: what they edit, correct and answer.

A page has a `plan.md`, and its sections may have another one, and the `replies` of the model that
judges. What a session comes to stands below its commands:

    $ start held=1,2 fails=3 asks=4 NAME=VALUE   steps that wait, fail or ask; settings of the run
    $ edit step=2 version=1 by=eva               an edit once a step (1) has begun, of the newest
    > OLD -> NEW                                 plan, or of the one that was read: other words,
    > without TEXT                               fewer lines, and what is written at the end
    $ wait for 5                                 until a step has begun; `a question`: until it asks
    $ let go 1                                   and on to where it rests, if the line says no more
    $ stop in 1                                  and let go of the other steps that the line names
    $ mend                                       what failed does so no more
    $ retry 2 by=anna                            so with `skip`, `resume` and `answer`
"""

import asyncio
import os
from collections.abc import Awaitable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from replan import Host, InputError, Limits, RunSettings, Specialist, Team, ask_user, open_runtime
from replan.testing import ScriptedModel, always
from scripts import END
from transcripts import BLOCK, COMMAND, sections_of


class Desk:
    """Work that is counted, asks, fails, or waits until it is let go, where it is to."""

    def __init__(self, held=(), fails=(), asks=()):
        self.held, self.fails, self.asks = held, fails, asks
        self.did, self.given = list[str](), list[str]()
        self.began = {step: asyncio.Event() for step in range(1, 9)}
        self.leave = {step: asyncio.Event() for step in range(1, 9)}

    async def work(self, context):
        step = context.plan_step.id
        if step in self.asks:
            ask_user(f"May {step} go on?")
        self.did.append(f"{step} {context.task_description}")
        inputs = f" with {dict(context.inputs)}" * bool(context.inputs)
        self.given.append(f"{self.did[-1]}{inputs}")
        self.began[step].set()
        if step in self.held:
            await self.leave[step].wait()
        if step in self.fails:
            raise ValueError(f"no {context.task_description}")
        times = self.did.count(self.did[-1])
        return f"done {step}" + f" ({times})" * (times > 1)

    def team(self, feedback=None, effects="pure", **options):
        self.model = ScriptedModel({"feedback": feedback or always(END)})
        worker = Specialist(name="a", intended_use="Works.", run=self.work, effects=effects)
        other = Specialist(name="b", intended_use="Sends.", run=self.work, effects="unsafe")
        return Team(host=Host(model=self.model), specialists=[worker, other], **options)


async def edited(run, desk, text, step=1, **options):
    await desk.began[step].wait()
    report = await run.report()
    given = {"version": report.plan.version, "by": "anna", **options}
    return await run.edit_plan(text(report.plan.content), **given)


@dataclass
class RunOfPage:
    """A run that people act on, as a page has it; what it came to is told where it rests."""

    where: str
    plan: str
    feedback: Any
    opened: AsyncExitStack
    seen: int = 0
    text: str = ""

    async def carry_out(self, typed: str) -> list[str]:
        command, *lines = typed.splitlines()
        word, *words = command.removeprefix("$ ").split()
        return await getattr(self, f"_{word}")(words, lines) or []

    async def _start(self, words: list[str], _: Any) -> list[str]:
        options = _options(words)
        named = (options.pop(name, "") for name in ("held", "fails", "asks"))
        self.desk = Desk(*({int(each) for each in text if each.isdigit()} for text in named))
        more = {name: float(options.pop(name)) for name in ("grace",) if name in options}
        approval = options.pop("approval", "never")
        team = self.desk.team(self.feedback, options.pop("effects", "pure"))
        settings = RunSettings(approval=approval, limits=Limits(**options))
        opening = open_runtime(team, storage=self.where, **more)
        self.runtime = await self.opened.enter_async_context(opening)
        started = self.runtime.start(
            {"plan": self.plan}, run_id="r", settings=settings, labels={"user": "eva"}
        )
        self.run = await started
        return [] if self.desk.held else await self._end(self.run)

    async def _edit(self, words: list[str], lines: list[str]) -> list[str]:
        given: dict[str, Any] = _options(words)
        given |= {name: int(given[name]) for name in ("step", "version") if name in given}

        def text(content: str) -> str:
            content = self.text or content
            for line in lines:
                content = _changed(content, line.removeprefix("> "))
            return content

        try:
            waits = await edited(self.run, self.desk, text, **given)
        except InputError as refused:
            return [f"refused: {refused}"]
        return [f"waits for {[*waits]}"]

    async def _read(self, *_: Any) -> None:
        await self.desk.began[1].wait()
        self.text = (await self.run.report()).plan.content

    async def _wait(self, words: list[str], _: Any) -> list[str]:
        if words[-1].isdigit():
            await asyncio.wait_for(self.desk.began[int(words[-1])].wait(), 20)
            return []
        asked = await anext(e async for e in self.run.events() if e.type == "input_requested")
        return [f"step {asked.step_id} asks, did {', '.join(self.desk.did)}"]

    async def _let(self, words: list[str], _: Any) -> list[str]:
        self.desk.leave[int(words[1])].set()
        return [] if words[2:] else await self._end(self.run)

    async def _stop(self, words: list[str], _: Any) -> list[str]:
        step, *also = (int(each) for each in words if each.isdigit())
        await self.desk.began[step].wait()
        await self.run.stop()
        for each in also:
            self.desk.leave[each].set()
        return await self._end(self.run)

    async def _mend(self, *_: Any) -> None:
        self.desk.fails = ()

    async def _resume(self, *_: Any) -> list[str]:
        for each in self.desk.leave.values():
            each.set()
        return await self._end(self.runtime.resume(self.run.run_id))

    async def _answer(self, words: list[str], _: Any) -> list[str]:
        (asked,) = (await self.runtime.get(self.run.run_id)).pending_questions
        return await self._end(await self.runtime.answer(self.run.run_id, {asked.key: words[0]}))

    async def _retry(self, words: list[str], _: Any) -> list[str]:
        return await self._corrected(self.runtime.retry, *words)

    async def _skip(self, words: list[str], _: Any) -> list[str]:
        return await self._corrected(self.runtime.skip, *words)

    async def _corrected(self, correct: Any, step: str, *words: str) -> list[str]:
        self.desk.held = ()
        try:
            run = await correct(self.run.run_id, int(step), **_options(words))
        except InputError as refused:
            return [f"refused: {refused}"]
        if run.run_id == self.run.run_id:
            return await self._end(run)
        before, self.run, self.seen = await self.runtime.get(self.run.run_id), run, 0
        told = await self._end(run)
        made = await self.runtime.get(run.run_id)
        about = f"{made.title}, {made.labels}"
        return [f"a new run of {made.origin}, which is {before.outcome}: {about}", *told]

    async def _end(self, run: Awaitable[Any]) -> list[str]:
        result = await run
        report = await self.runtime.get(self.run.run_id)
        versions = "; ".join(each.by for each in report.revisions)
        lines = [f"{result.outcome}, version {result.plan.version} ({versions})"]
        lines += [f"changed by {e.by}: {e.description}" for e in report.plan.update_history]
        lines += [f"did {each}" for each in sorted(self.desk.given)]
        events = [event async for event in self.runtime.events(self.run.run_id)]
        lines += [line for event in events[self.seen :] for line in _told(event)]
        self.seen = len(events)
        lines += [f"warning: {each}" for each in result.warnings]
        lines += result.text.splitlines()
        for asked in report.pending_questions:
            lines += [f"asks {asked.key}: {asked.text}"]
            lines += (asked.details or {}).get("changes", "").splitlines()[2:]
        plan = (each for each in result.plan.content.splitlines() if each.strip())
        return lines + [each for each in plan if not each.startswith(("  >", "<!--"))]


def _options(words: Iterable[str]) -> dict[str, str]:
    return dict(each.split("=") for each in words if "=" in each)


def _changed(content: str, line: str) -> str:
    old, arrow, new = line.partition(" -> ")
    if arrow:
        return content.replace(old, new)
    if line.startswith("without "):
        lines = content.splitlines(keepends=True)
        return "".join(each for each in lines if line.removeprefix("without ") not in each)
    return f"{content}{line}\n"


def _told(event: Any) -> list[str]:
    match event.type:
        case "run_steered":
            word = f"{event.kind} {event.status}, by {event.by}, of version {event.based_on}"
            word += f", in {event.version}" * bool(event.version)
            lines = [word + f", behind {[*event.waiting_for]}" * bool(event.waiting_for)]
        case "run_resumed" | "run_stopped":
            lines = ["goes on" if event.type == "run_resumed" else f"rests: {event.reason}"]
        case "plan_updated":
            lines = ["its plan is new"]
        case "run_corrected":
            lines = [f"{event.action} {event.step_id}, by {event.by or 'somebody'}"]
        case "steps_invalidated":
            lines = [f"to be done again: {', '.join(map(str, event.reruns))}"]
        case "plan_parse_warning":
            lines = [f"misread: {each.kind} of step {each.step}" for each in event.parse_warnings]
        case _:
            lines = []
    return lines


def names_on(page: Path) -> list[str]:
    """The sections of a page, each of which is a run."""
    return [name for name in sections_of(page) if name]


async def check_run(page: Path, name: str, where: str) -> None:
    """See that a run comes to what its section has below each command."""
    sections = sections_of(page)
    found = [(kind, text) for each in ("", name) for _, kind, text in BLOCK.findall(sections[each])]
    blocks = dict(found)
    replies = yaml.safe_load(blocks.get("replies", "{}"))
    feedback = [replies["feedback"]] if replies else None
    now = ""
    async with AsyncExitStack() as opened:
        run = RunOfPage(where, blocks["plan.md"], feedback, opened)
        for typed in COMMAND.findall(blocks["console"]):
            told = await run.carry_out(typed)
            now += typed + "".join(f"{line}\n" for line in told)
    if os.environ.get("REPLAN_TEST_WRITE_SNAPSHOTS"):
        told = sections[name].replace(blocks["console"], now)
        whole = "".join(sections.values()).replace(sections[name], told)
        await asyncio.to_thread(page.write_text, whole, "utf-8")
    else:
        assert now == blocks["console"]
