"""A run that asks, killed after any of its writes, on SQLite and PostgreSQL: nobody is asked twice.

The file is also the program that is killed: it forks a process for each life of a run, so that
what is slow to import is imported once.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command

from replan import (
    Approval,
    Host,
    MultiAgentConfig,
    Specialist,
    ask_user,
    build_graph,
    open_storage,
    run,
    waiting_for,
)
from replan.ports.storage import Storage
from replan.testing import ScriptedModel, always

STRIDES = {"sqlite": 7, "postgres": 23}
"""Of so many writes one is killed at: a kill costs more time with a server."""

PLAN = """\
- [ ] 1. Ask @a
- [ ] 2. Ask @a
- [ ] 3. Aside @a
- [ ] 4. After one @a (after 1)
- [ ] 5. After both @a (after 1, 2)
"""


Say = Callable[..., None]


def watch(storage: Storage, say: Say, kill_at: int) -> None:
    """Say what is on record, and kill the process after so many writes."""
    writes = count(1)

    def watched(write: Callable[..., Any]) -> Callable[..., Any]:
        async def written(*given: Any, **named: Any) -> Any:
            value = await write(*given, **named)
            if write.__name__ == "finished":
                say("finished", given[0].step_id)
            if write.__name__ == "note" and not given[1].startswith("question/"):
                say("noted", given[1])
            if next(writes) == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return value

        return written

    for name in ("started", "ended", "finished", "note"):
        setattr(storage.journal, name, watched(getattr(storage.journal, name)))
    for name in ("aput", "aput_writes"):
        setattr(storage.checkpointer, name, watched(getattr(storage.checkpointer, name)))


def graph_on(storage: Storage, say: Say) -> Any:
    def work(context: Any) -> str:
        step = context.plan_step.id
        heard = (
            ask_user(f"question {step}") if step in (1, 2) else " ".join(context.inputs.values())
        )
        say("ran", step)
        return f"{step}: {heard}"

    model = ScriptedModel({"feedback": always("---\nverdict: complete\n---\nThe answer.")})
    team = [Specialist(name="a", intended_use="Works.", run=work)]
    host = Host(tool_calling_model=model)
    config = MultiAgentConfig(host=host, specialists=team, approval="always")
    return build_graph(config, storage=storage)


def decided(state: Any, say: Say) -> Command[Any]:
    """What a person says, who answers the last question first: their order must not matter."""
    waiting = waiting_for(state)
    if isinstance(waiting, Approval):
        say("decided")
        return Command(resume="approve")
    say("answered", waiting[-1].key)
    return Command(resume={waiting[-1].key: f"answer to {waiting[-1].key}"})


async def life(folder: Path, where: str, kill_at: int) -> None:
    """Go on with the run, answer what it asks, and die after so many writes."""
    config: Any = {"configurable": {"thread_id": folder.name}}
    log = os.open(folder / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def say(*words: object) -> None:
        os.write(log, f"{' '.join(map(str, words))}\n".encode())

    async with open_storage(where) as storage:
        watch(storage, say, kill_at)
        graph = graph_on(storage, say)
        begun = (await graph.aget_state(config)).created_at is not None
        given = None if begun else {"messages": [("user", "Go.")], "plan": PLAN}
        state = await run(graph, given, config=config, run_id=f"r{folder.name}")
        while state["outcome"] == "waiting":
            state = await run(graph, decided(state, say), config=config)
    texts = {key: result.text for key, result in state["current_specialist_results"].items()}
    asked = {key: question.answer for key, question in state["questions"].items()}
    ended = {"outcome": state["outcome"], "texts": texts, "asked": asked}
    (folder / "ended").write_text(json.dumps(ended), "utf-8")


def in_a_process_of_its_own(folder: Path, where: str, kill_at: int) -> bool:
    """Live one life; tell whether it was killed."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            asyncio.run(life(folder, where, kill_at))
            code = 0
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    return os.WIFSIGNALED(status)


def kill_all(folder: Path, where: str, stride: int) -> None:
    """Kill a first life after every so-manieth write, a second one soon, and let a third end."""
    for kill_at in count(1, stride):
        case = folder / str(kill_at)
        case.mkdir(parents=True)
        if not in_a_process_of_its_own(case, where, kill_at):
            break
        in_a_process_of_its_own(case, where, 1 + kill_at % 5)
        in_a_process_of_its_own(case, where, 0)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory, postgres_dsn: str) -> Path:
    from postgres import fresh_database  # noqa: PLC0415 - the program does without it

    folder = tmp_path_factory.mktemp("killed")
    with fresh_database(postgres_dsn) as address:
        program = [sys.executable, __file__, folder, folder / "runs.sqlite", address]
        subprocess.run(program, check=True, timeout=110)
    return folder


@pytest.fixture(params=STRIDES)
def cases(request: pytest.FixtureRequest, killed: Path) -> list[Path]:
    return sorted((killed / request.param).iterdir(), key=lambda case: int(case.name))


def test_a_run_that_asks_outlives_every_kill_with_the_right_answers(cases):
    assert len(cases) > 3
    for case in cases:
        ended = json.loads((case / "ended").read_text("utf-8"))
        heard = {step: f"{step}: answer to {step}/a/1" for step in (1, 2)}
        assert ended["outcome"] == "completed", case.name
        assert ended["asked"] == {f"{step}/a/1": f"answer to {step}/a/1" for step in (1, 2)}
        assert ended["texts"]["4/a"] == f"4: {heard[1]}"
        assert ended["texts"]["5/a"] == f"5: {heard[1]} {heard[2]}"


def test_nobody_is_asked_what_is_on_record_and_nothing_on_record_is_done_again(cases):
    for case in cases:
        on_record: set[str] = set()
        for line in (case / "log").read_text("utf-8").splitlines():
            word, _, what = line.partition(" ")
            match word:
                case "noted":
                    on_record.add("decided" if what.startswith("decision/") else what)
                case "finished":
                    on_record.add(f"ran {what}")
                case "answered":
                    assert f"answer/{what}" not in on_record, case.name
                case _:
                    assert line not in on_record, case.name


if __name__ == "__main__":
    for (name, stride), where in zip(STRIDES.items(), sys.argv[2:], strict=True):
        kill_all(Path(sys.argv[1], name), where, stride)
