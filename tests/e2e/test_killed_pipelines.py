"""A pipeline in a plan is killed at writes of its thread, and other processes go on with it."""

import asyncio
import json
from pathlib import Path

import pytest

import warm
from made_pipelines import FourDeep, texts
from pipeline_lives import kill_all
from replan.assembly.pipelines import run_pipeline
from replan.storage.memory_threads import MemoryThreads


@pytest.mark.parametrize(("store", "stride"), [("sqlite", 11), ("postgres", 13)])
def test_a_killed_pipeline_loses_no_message_and_says_none_twice(
    store: str, stride: int, tmp_path: Path, request: pytest.FixtureRequest
):
    where = tmp_path / "runs.db"
    if store == "postgres":
        where = request.getfixturevalue("postgres_database")
    ended = warm.call(kill_all, tmp_path / "cases", where, stride)
    assert ended.returncode == 0, ended.stderr
    alone = MemoryThreads()
    asyncio.run(run_pipeline(FourDeep, "hello", repository=alone))
    expected = texts(asyncio.run(alone.get_thread("main")))
    cases = sorted((tmp_path / "cases").iterdir(), key=lambda case: int(case.name))
    assert len(cases) > 2, ended.stderr
    for case in cases:
        found = json.loads((case / "ended").read_text("utf-8"))
        assert (found["text"], found["texts"]) == ("one/finish: hello", expected), case.name
        assert len(found["ids"]) == len({*found["ids"]}), case.name
        stored: dict[str, str] = {}
        for line in (case / "log").read_text("utf-8").splitlines():
            word, what, *said = line.split(" ", 2)
            if word == "stored":
                stored[what] = said[0].partition(":")[0]
            else:
                assert what not in stored.values(), f"{case.name}: {what} is done twice"
        assert stored.keys() <= {*found["ids"]}, f"{case.name}: a stored message is lost"
