"""A run that asks, killed after any of its writes: a process is forked for each of its lives.

`python lives.py FOLDER STORAGE STRIDE` kills it at one of STRIDE writes, and behind each row of
`ROWS`, before LangGraph can store a checkpoint that knows of it. In FOLDER stands for each case
what was said in all of its lives, and how it ended.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from langgraph.types import Command

from replan import (
    Host,
    Specialist,
    Team,
    ask_user,
    build_graph,
    open_storage,
    run,
    waiting_for,
)
from replan.ports.storage import Storage
from replan.testing import ScriptedModel, always

PLAN = """\
- [ ] 1. Ask @a
- [ ] 2. Ask @a
- [ ] 3. Aside @a
- [ ] 4. After one @a (after 1)
- [ ] 5. After both @a (after 1, 2)
"""
ROWS = (
    "finished 3",
    "finished 4",
    "finished 5",
    "noted answer/1/a/1",
    "noted answer/2/a/1",
)
"""What is said of rows of the log behind which the process is killed."""

Say = Callable[..., None]


def watch(storage: Storage, say: Say, kill_at: int | str) -> None:
    """Say what is on record, and kill the process after so many writes, or behind a row."""
    writes = count(1)

    def watched(write: Callable[..., Any]) -> Callable[..., Any]:
        async def written(*given: Any, **named: Any) -> Any:
            value = await write(*given, **named)
            row = row_of(write.__name__, given)
            if row:
                say(row)
            if kill_at in (next(writes), row):
                os.kill(os.getpid(), signal.SIGKILL)
            return value

        return written

    for name in ("started", "ended", "finished", "note"):
        setattr(storage.log, name, watched(getattr(storage.log, name)))
    for name in ("aput", "aput_writes"):
        setattr(storage.checkpointer, name, watched(getattr(storage.checkpointer, name)))


def row_of(write: str, given: Any) -> str:
    """What is said of the row that was written; nothing of others."""
    if write == "finished":
        return f"finished {given[0].step_id}"
    is_heard = write == "note" and not given[1].startswith("question/")
    return f"noted {given[1]}" if is_heard else ""


def graph_on(storage: Storage, say: Say) -> Any:
    def work(context: Any) -> str:
        step = context.plan_step.id
        heard = (
            ask_user(f"question {step}") if step in (1, 2) else " ".join(context.inputs.values())
        )
        say("ran", step)
        return f"{step}: {heard}"

    model = ScriptedModel({"feedback": always("---\nverdict: complete\n---\nThe answer.")})
    team = [Specialist(name="a", intended_use="Works.", run=work, effects="pure")]
    host = Host(model=model)
    config = Team(host=host, specialists=team, approval="always")
    return build_graph(config, storage=storage)


def decided(state: Any, say: Say) -> Command[Any]:
    """What a person says, who answers the last question first: their order must not matter."""
    waiting = waiting_for(state)
    if waiting[0].kind == "plan":
        say("decided")
        return Command(resume={waiting[0].key: "approve"})
    say("answered", waiting[-1].key)
    return Command(resume={waiting[-1].key: f"answer to {waiting[-1].key}"})


async def life(folder: Path, where: str, kill_at: int | str) -> None:
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
        state = (await run(graph, given, config=config, run_id=f"r{folder.name}")).state
        while state["outcome"] == "waiting":
            state = (await run(graph, decided(state, say), config=config)).state
    texts = {key: result.text for key, result in state["current_specialist_results"].items()}
    asked = {key: question.answer for key, question in state["questions"].items()}
    ended = {"outcome": state["outcome"], "texts": texts, "asked": asked}
    (folder / "ended").write_text(json.dumps(ended), "utf-8")


def in_a_process_of_its_own(folder: Path, where: str, kill_at: int | str) -> bool:
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


def kill_behind_rows(folder: Path, where: str) -> None:
    """Kill a first life behind each of the rows, and let a second one end."""
    for row in ROWS:
        case = folder / row.replace(" ", "-").replace("/", "-")
        case.mkdir(parents=True)
        assert in_a_process_of_its_own(case, where, row), row
        in_a_process_of_its_own(case, where, 0)


def kill_all(folder: Path, where: str, stride: int) -> None:
    """Kill a first life after every n-th write, a second one soon, and let a third end."""
    for kill_at in count(1, stride):
        case = folder / str(kill_at)
        case.mkdir(parents=True)
        if not in_a_process_of_its_own(case, where, kill_at):
            break
        in_a_process_of_its_own(case, where, 1 + kill_at % 5)
        in_a_process_of_its_own(case, where, 0)


if __name__ == "__main__":
    kill_behind_rows(Path(sys.argv[1]), sys.argv[2])
    kill_all(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
