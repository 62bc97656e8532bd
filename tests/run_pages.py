"""Runs that people act on, as pages have them: what they edit, correct and answer.

A page has a `plan.md`, and its sections may have another one, and the `replies` of the model that
judges (then it is content). What a session comes to stands below its commands:

    $ start held=1,2 fails=3 asks=4 NAME=VALUE   steps that wait, fail or ask; settings of the run;
                                                 step 0 is the host that judges
    $ edit step=2 version=1 by=eva               an edit once a step (1) has begun, of the newest
    > OLD -> NEW                                 plan, or of the one that was read: other words,
    > without TEXT                               fewer lines, and what is written at the end
    $ say TEXT by=eva                            a message to the host
    $ wait for 5                                 until a step has begun; `a question`: until it
                                                 asks; `the end`: until the run rests
    $ let go 1                                   and on to where it rests, if the line says no more
    $ stop in 1                                  and let go of the other steps that the line names
    $ mend                                       what failed does so no more
    $ retry 2 by=anna NAME=VALUE                 so with `skip`, `resume` and `answer`
    $ move                                       to a storage of another process, as it travels
"""

import asyncio
import json
import os
import re
from collections.abc import Awaitable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from replan import (
    Host,
    InputError,
    Limits,
    PortableRun,
    RunSettings,
    Specialist,
    Team,
    ask_user,
    open_runtime,
)
from replan.prompts.sections import sections_of as parts_of
from replan.testing import ScriptedModel, always
from scripts import END
from transcripts import BLOCK, COMMAND, reply_of, sections_of

_AT = re.compile(r"[-\d]{10} \d\d:\d\d UTC")


class Desk:
    """Work that is counted, asks, fails, or waits until it is let go, where it is to."""

    def __init__(self, held=(), fails=(), asks=()):
        self.held, self.fails, self.asks = held, fails, asks
        self.did, self.given = list[str](), list[str]()
        self.began = {step: asyncio.Event() for step in range(9)}
        self.leave = {step: asyncio.Event() for step in range(9)}

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

    def _judging(self, first=END, *more):
        async def judge(_):
            self.began[0].set()
            await self.leave[0].wait()
            return first

        return [judge if 0 in self.held else first, *more, always(END)]

    def team(self, feedback=(), effects="pure", **options):
        self.model = ScriptedModel({"feedback": self._judging(*feedback)})
        effects = None if effects == "undeclared" else effects
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
    feedback: list[Any]
    opened: AsyncExitStack
    seen: int = 0
    heard: int = 0
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
        team = self.team = self.desk.team(self.feedback, options.pop("effects", "pure"))
        opening = open_runtime(team, storage=self.where, **more)
        self.runtime = await self.opened.enter_async_context(opening)
        labels, settings = {"user": "eva"}, _settings(options)
        given = {"plan": self.plan}
        self.run = await self.runtime.start(given, run_id="r", settings=settings, labels=labels)
        return [] if self.desk.held else await self._end(await self.run)

    async def _edit(self, words: list[str], lines: list[str]) -> list[str]:
        given: dict[str, Any] = _options(words)
        given |= {name: int(given[name]) for name in ("step", "version") if name in given}

        def text(content: str) -> str:
            content = self.text or content
            for line in lines:
                content = _changed(content, line.removeprefix("> "))
            return content

        return await _steered(edited(self.run, self.desk, text, **given))

    async def _say(self, words: list[str], _: Any) -> list[str]:
        await self.desk.began[1].wait()
        given = {"by": "anna", **_options(words)}
        return await _steered(self.run.send_message(_text(words), **given))

    async def _read(self, *_: Any) -> None:
        await self.desk.began[1].wait()
        self.text = (await self.run.report()).plan.content

    async def _wait(self, words: list[str], _: Any) -> list[str]:
        if words[-1] == "end":
            return await self._end(await self.run)
        if words[-1].isdigit():
            await asyncio.wait_for(self.desk.began[int(words[-1])].wait(), 20)
            return []
        asked = await anext(e async for e in self.run.events() if e.type == "input_requested")
        return [f"step {asked.step_id} asks, did {', '.join(self.desk.did)}"]

    async def _let(self, words: list[str], _: Any) -> list[str]:
        self.desk.leave[int(words[1])].set()
        return [] if words[2:] else await self._end(await self.run)

    async def _stop(self, words: list[str], _: Any) -> list[str]:
        step, *also = (int(each) for each in words if each.isdigit())
        await self.desk.began[step].wait()
        await self.run.stop()
        for each in also:
            self.desk.leave[each].set()
        return await self._end(await self.run)

    async def _mend(self, *_: Any) -> None:
        self.desk.fails = ()

    async def _resume(self, words: list[str], _: Any) -> list[str]:
        for each in self.desk.leave.values():
            each.set()
        return await self._gone_on(self.runtime.resume(self.run.run_id, **_given(words)))

    async def _answer(self, words: list[str], _: Any) -> list[str]:
        asked = (await self.runtime.get(self.run.run_id)).pending_questions
        said = yaml.safe_load(_text(words)) if words[0][0] == "{" else _text(words)
        answer = {asked[0].key: said} if len(asked) == 1 and isinstance(said, str) else said
        return await self._gone_on(self.runtime.answer(self.run.run_id, answer, **_given(words)))

    async def _move(self, *_: Any) -> list[str]:
        there = open_runtime(self.team, storage=":memory:", grace=0)
        there = await self.opened.enter_async_context(there)
        try:
            sent = json.dumps(
                (await self.runtime.export(self.run.run_id)).to_json(), sort_keys=True
            )
        except InputError as refused:
            return [f"refused: {refused}"]
        await there.adopt(PortableRun.of_json(json.loads(sent)))
        self.runtime, self.seen = there, 0
        return await self._end(await there.wait(self.run.run_id))

    async def _gone_on(self, going: Awaitable[Any]) -> list[str]:
        try:
            run = await going
        except InputError as refused:
            return [f"refused: {refused}"]
        return await self._end(await run if isinstance(run, Awaitable) else run)

    async def _retry(self, words: list[str], _: Any) -> list[str]:
        return await self._corrected(self.runtime.retry, *words)

    async def _skip(self, words: list[str], _: Any) -> list[str]:
        return await self._corrected(self.runtime.skip, *words)

    async def _corrected(self, correct: Any, step: str, *words: str) -> list[str]:
        self.desk.held = ()
        try:
            run = await correct(self.run.run_id, int(step), **_given(words))
        except InputError as refused:
            return [f"refused: {refused}"]
        if run.run_id == self.run.run_id:
            return await self._end(await run)
        before, self.run, self.seen = await self.runtime.get(self.run.run_id), run, 0
        told = await self._end(await run)
        made = await self.runtime.get(run.run_id)
        about = f"{made.title}, {made.labels}"
        return [f"a new run of {made.origin}, which is {before.outcome}: {about}", *told]

    async def _end(self, result: Any) -> list[str]:
        report = await self.runtime.get(self.run.run_id)
        versions = "; ".join(each.by for each in report.revisions)
        lines = [f"{result.outcome}, version {result.plan.version} ({versions})"]
        lines += [f"changed by {e.by}: {e.description}" for e in report.plan.update_history]
        lines += [f"did {each}" for each in sorted(self.desk.given)]
        lines += [
            f"attempt {each.entry.number} of step {each.entry.step_id}: {each.outcome}"
            for each in report.attempts
            if each.outcome != "done"
        ]
        calls, self.heard = self.desk.model.calls[self.heard :], len(self.desk.model.calls)
        said = [each for call in calls for each in parts_of(call.messages[-1].text)]
        lines += [f"the host heard: {each.text}" for each in said if each.tag == "said"]
        events = [event async for event in self.runtime.events(self.run.run_id)]
        lines += [line for event in events[self.seen :] for line in _told(event)]
        self.seen = len(events)
        lines += [f"warning: {_AT.sub('TIME', each)}" for each in result.warnings]
        lines += result.text.splitlines()
        for asked in report.pending_questions:
            lines += [f"asks {asked.key}: {asked.text}"]
            lines += (asked.details or {}).get("changes", "").splitlines()[2:]
        plan = (each for each in result.plan.content.splitlines() if each.strip())
        return lines + [each for each in plan if not each.startswith(("  >", "<!--"))]


async def _steered(sent: Awaitable[Any]) -> list[str]:
    try:
        return [f"waits for {[*await sent]}"]
    except InputError as refused:
        return [f"refused: {refused}"]


def _text(words: Iterable[str]) -> str:
    return " ".join(each for each in words if "=" not in each)


def _given(words: Iterable[str]) -> dict[str, Any]:
    """What a command names: settings of the run, or the rest of its options."""
    options = _options(words)
    own = {name: options.pop(name) for name in ("by", "allow_repeat") if name in options}
    return {**own, "settings": _settings(options)} if options else own


def _settings(options: dict[str, str]) -> RunSettings:
    names = RunSettings.model_fields.keys() & options.keys()
    own = {name: options[name] for name in names}
    return RunSettings(**own, limits=Limits(**{k: v for k, v in options.items() if k not in names}))


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
    told = yaml.safe_load(blocks.get("replies", "feedback: []"))["feedback"]
    feedback = reply_of(told if isinstance(told, list) else [told])
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
