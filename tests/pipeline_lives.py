"""A step of a pipeline of four levels, killed after writes of its thread: each life is a process.

In the folder of each case stands what was done and stored in all of its lives, and how it ended.
"""

import asyncio
import json
import os
import signal
import traceback
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import made_pipelines as pipelines
from made_pipelines import FourDeep, ids, texts
from replan import Host, Specialist, Team, build_graph, open_storage, run
from replan.state.pipeline.threads import Thread
from replan.testing import ScriptedModel, always

PLAN = "- [ ] 1. hello @writer\n"


def said_by(thread: Thread) -> Iterator[str]:
    """Yield what the bot of a thread says, and those of its sub-threads, by id and text."""
    yield from (f"{each.id} {each.text}" for each in thread.messages if each.sender == "bot")
    for _, below in thread.sub_threads():
        yield from said_by(below)


class DyingThreads:
    """A repository after one of whose writes the process is killed."""

    def __init__(self, inner: Any, kill_at: int, log: int) -> None:
        self._inner, self._left, self._log = inner, kill_at, log

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in ("save_thread", "update_message", "update_thread_settings"):
            return found

        async def written(thread: Thread, *given: Any, **named: Any) -> None:
            before = thread.revision
            await found(thread, *given, **named)
            if thread.revision == before:
                return
            for line in said_by(thread):
                os.write(self._log, f"stored {line}\n".encode())
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        return written


class Told(dict[str, Exception]):
    """Writes down which handler begins its work."""

    def __init__(self, log: int) -> None:
        self._log = log

    def __contains__(self, name: object) -> bool:
        os.write(self._log, f"ran {name}\n".encode())
        return False


async def life(folder: Path, where: str, kill_at: int) -> None:
    log = os.open(folder / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    pipelines.failing = Told(log)
    config: Any = {"configurable": {"thread_id": folder.name}}
    run_id = f"r{folder.name}"
    async with open_storage(where) as opened:
        storage = replace(opened, threads=DyingThreads(opened.threads, kill_at, log))
        model = ScriptedModel({"feedback": always("---\nverdict: complete\n---\nThe end.")})
        team = Team(Host(model=model), [Specialist("writer", "Writes.", pipeline=FourDeep)])
        graph = build_graph(team, storage=storage)
        begun = (await graph.aget_state(config)).created_at is not None
        given = None if begun else {"messages": [("user", "Go.")], "plan": PLAN}
        state = (await run(graph, given, config=config, run_id=run_id)).state
        thread = await storage.threads.get_thread(f"{run_id}/1.0/writer")
    result = state["current_specialist_results"]["1/writer"]
    ended = {"text": result.text, "texts": texts(thread), "ids": ids(thread)}
    (folder / "ended").write_text(json.dumps(ended), "utf-8")


def in_a_process_of_its_own(folder: Path, where: str, kill_at: int) -> bool:
    """Live one life; tell whether it was killed."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            asyncio.run(life(folder, where, kill_at))
            code = 0
        except Exception:  # noqa: BLE001 - whatever it is, it is told
            traceback.print_exc()
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    assert status in (0, signal.SIGKILL), f"{folder.name}: a life failed"
    return status == signal.SIGKILL


def kill_all(folder: Path, where: str, stride: int) -> None:
    """Kill a first life after every n-th write, a second one soon, and let a third end."""
    for kill_at in count(stride, stride):
        case = folder / str(kill_at)
        case.mkdir(parents=True)
        if not in_a_process_of_its_own(case, where, kill_at):
            break
        in_a_process_of_its_own(case, where, 2)
        in_a_process_of_its_own(case, where, 0)
