"""A run that asks, on a SQLite file, killed after any of its writes: nobody is asked twice.

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

STRIDE = 7
CONFIG = {"configurable": {"thread_id": "t"}}
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


async def life(folder: Path, kill_at: int) -> None:
    """Go on with the run, answer what it asks, and die after so many writes."""
    log = os.open(folder / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def say(*words: object) -> None:
        os.write(log, f"{' '.join(map(str, words))}\n".encode())

    async with open_storage(folder / "runs.sqlite") as storage:
        watch(storage, say, kill_at)
        graph = graph_on(storage, say)
        begun = (await graph.aget_state(CONFIG)).created_at is not None
        given = None if begun else {"messages": [("user", "Go.")], "plan": PLAN}
        state = await run(graph, given, config=CONFIG, run_id="r")
        while state["outcome"] == "waiting":
            state = await run(graph, decided(state, say), config=CONFIG)
    texts = {key: result.text for key, result in state["current_specialist_results"].items()}
    asked = {key: question.answer for key, question in state["questions"].items()}
    ended = {"outcome": state["outcome"], "texts": texts, "asked": asked}
    (folder / "ended").write_text(json.dumps(ended), "utf-8")


def in_a_process_of_its_own(folder: Path, kill_at: int) -> bool:
    """Live one life; tell whether it was killed."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            asyncio.run(life(folder, kill_at))
            code = 0
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    return os.WIFSIGNALED(status)


def main(folder: Path) -> None:
    """Kill a first life after every so-manieth write, a second one soon, and let a third end."""
    for kill_at in count(1, STRIDE):
        case = folder / str(kill_at)
        case.mkdir()
        if not in_a_process_of_its_own(case, kill_at):
            break
        in_a_process_of_its_own(case, 1 + kill_at % 5)
        in_a_process_of_its_own(case, 0)


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("killed")
    subprocess.run([sys.executable, __file__, folder], check=True, timeout=110)
    return sorted(folder.iterdir(), key=lambda case: int(case.name))


def test_a_run_that_asks_outlives_every_kill_with_the_right_answers(cases):
    assert len(cases) > 8
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
    main(Path(sys.argv[1]))
