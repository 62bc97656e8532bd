"""A run that meets what was laid in its way, and goes on by the terminal or from Python.

What its steps do is counted in a file, outside of Replan. The terminal works in this process, or,
where it is to be killed, in one that is forked for it.
"""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from typer.testing import CliRunner

import warm
from replan import Limits, RunSettings, open_storage, raise_limits, run
from replan.assembly.graphs import team_graph
from replan.cli.main import app
from replan.log.run_log import RunLog

AFTER = {1: (), 2: (1,), 3: (1,), 4: (), 5: (2, 3), 6: (4, 5)}
PLAN = "".join(
    f"- [ ] {step}. Number {step} @worker"
    + (f" (after {', '.join(map(str, after))})\n" if after else "\n")
    for step, after in AFTER.items()
)
TEAM = """\
host: {model: offline}
specialists: [{name: worker, intended_use: Works., run: 'kept_runs:work', effects: pure}]
"""
Trap = Callable[["KeptRun"], Awaitable[None]]


def text_of(step):
    """What a step must come to: it holds what it was given, so that a swap shows."""
    return f"{step} from {[text_of(each) for each in AFTER[step]]}"


async def kill(_):
    os.kill(os.getpid(), signal.SIGKILL)


async def kill_once_seen(kept):
    """Wait until somebody writes into the pipe `seen` of the run's folder."""
    await asyncio.to_thread((kept.folder / "seen").read_text)
    await kill(kept)


async def interrupt(_):
    """What Ctrl-C does."""
    signal.raise_signal(signal.SIGINT)
    await asyncio.Event().wait()


async def fail(_):
    raise TypeError("It cannot be done.")


async def hang(_):
    await asyncio.Event().wait()


async def work(context):
    """What the steps of every run here do."""
    return await _runs[-1].step(context)


_runs: list["KeptRun"] = []


@dataclass
class KeptRun:
    """One run on a plan of six steps.

    Attributes:
        folder: Where its files are.
        where: Where it is kept.
        traps: What a step meets before it has its effect, once.
        dies_behind: The step with whose result, once that is on record, the process is killed.
        model: Its host's model, if it is not the team's.
        environment: The variables of its shell.
        again: Steps that were on record and were done again.
        lost: Steps that were on record and are no more, or say something else.
    """

    folder: Path
    where: str
    traps: dict[int, Trap] = field(default_factory=dict[int, Trap])
    dies_behind: int = 0
    model: str | None = None
    environment: dict[str, str] = field(default_factory=dict[str, str])
    again: Counter[int] = field(default_factory=Counter[int])
    lost: Counter[int] = field(default_factory=Counter[int])

    def __post_init__(self):
        (self.folder / "team.yaml").write_text(TEAM)
        (self.folder / "plan.md").write_text(PLAN)

    async def step(self, context):
        step = context.plan_step.id
        if trap := self.traps.pop(step, None):
            await trap(self)
        with (self.folder / "effects").open("a") as effects:
            effects.write(f"{step}\n")
        return f"{step} from {list(context.inputs.values())}"

    @property
    def effects(self):
        """The steps that were done, one entry for each time."""
        path = self.folder / "effects"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def begin(self, *options, task="plan.md"):
        """Begin the run at the terminal."""
        given = str(self.folder / task) if task == "plan.md" else task
        return self._typed("run", given, "--team", self.folder / "team.yaml", *options)

    def resume(self, by, *, max_steps=None):
        """Go on with the run until it ends or meets a trap, with a larger limit if one is named."""
        if by == "terminal":
            self._typed("resume", "last", *(["--set", f"max_steps={max_steps}"] * bool(max_steps)))
        else:
            asyncio.run(self._resumed(max_steps))

    def hear(self, message):
        """Take a new message on the thread of the run, from Python."""
        asyncio.run(self._given(message))

    def die(self, work, *arguments):
        """Do one of the above in a process of its own, which a trap kills."""
        ended = warm.call(work, *arguments)
        assert ended.returncode == -signal.SIGKILL, ended.stderr

    def go_on(self, work, *arguments, **options):
        """Do one of the above, and count what is done again and what is lost by it."""
        recorded, before = asyncio.run(self._recorded()), len(self.effects)
        work(*arguments, **options)
        self.again.update(recorded.keys() & Counter(self.effects[before:]).keys())
        kept = asyncio.run(self._recorded())
        self.lost.update(step for step, text in recorded.items() if kept.get(step) != text)

    def on_record(self):
        """The texts of the results that the log has, by step; and the thread's state."""
        return asyncio.run(self._on_record())

    async def _on_record(self):
        async with self._graph() as (graph, config, _):
            state = (await graph.aget_state(config)).values
        return await self._recorded(), state

    def goes_on_at(self):
        """The nodes with which the graph goes on, by its newest checkpoint."""
        return asyncio.run(self._goes_on_at())

    async def _goes_on_at(self):
        async with self._graph() as (graph, config, _):
            return (await graph.aget_state(config)).next

    def completed(self):
        """The steps whose completion others heard of, one entry for each time."""
        return asyncio.run(self._completed())

    async def _completed(self):
        async with self._graph() as (_, config, storage):
            logged = await storage.log.events(config["configurable"]["thread_id"])
        assert [each.seq for each in logged] == [*range(1, len(logged) + 1)]
        events = [each.event for each in logged]
        return [each["step_id"] for each in events if each["type"] == "specialist_completed"]

    async def _recorded(self):
        async with open_storage(self.where) as storage:
            (record,) = await storage.runs.recent(1)
            results = await storage.log.results(record.thread_id)
        return {each.step_id: each.text for each in results.values() if not each.is_failed}

    async def _given(self, given):
        async with self._graph() as (graph, config, _):
            await run(graph, given, config=config)

    async def _resumed(self, max_steps):
        async with self._graph() as (graph, config, _):
            if max_steps:
                settings = RunSettings(limits=Limits(max_steps=max_steps))
                await raise_limits(graph, settings=settings, config=config)
            await run(graph, None, config=config, run_id=config["configurable"]["thread_id"])

    @asynccontextmanager
    async def _graph(self):
        """Open all anew, as another process would."""
        shell = {**os.environ, **self.environment}
        with self.at_work():
            async with open_storage(self.where) as storage:
                graph = team_graph(
                    self.folder / "team.yaml",
                    model=self.model,
                    environment=shell,
                    storage=storage,
                )
                (record,) = await storage.runs.recent(1)
                yield graph, {"configurable": {"thread_id": record.thread_id}}, storage

    def _typed(self, *words):
        with self.at_work():
            words = (*words, "--storage", self.where, "--shutdown-timeout", 0)
            done = CliRunner().invoke(app, [*map(str, words)], env=self.environment)
        assert "Traceback" not in done.output
        assert "Warning" not in done.output
        return done

    @contextmanager
    def at_work(self):
        finish = RunLog.finished

        async def finished(log, attempt, *given, **named):
            counts = await finish(log, attempt, *given, **named)
            if attempt.step_id == self.dies_behind:
                await kill(self)
            return counts

        _runs.append(self)
        try:
            with patch.object(RunLog, "finished", finished):
                yield
        finally:
            _runs.pop()
