"""A run that asks, killed after any of its writes: nobody is asked twice, nothing is done again."""

import json
from pathlib import Path

import pytest

import warm
from postgres import fresh_database

LIVES = Path(__file__).with_name("lives.py")
STRIDES = {"sqlite": 17, "postgres": 37}
"""Of so many writes one is killed at: a kill costs more time with a server."""


@pytest.fixture(scope="module", params=STRIDES)
def cases(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("lives")
    if request.param == "sqlite":
        kill_all(folder / "cases", folder / "runs.sqlite", STRIDES["sqlite"])
    else:
        with fresh_database(request.getfixturevalue("postgres_dsn")) as address:
            kill_all(folder / "cases", address, STRIDES["postgres"])
    return sorted((folder / "cases").iterdir())


def kill_all(*words: object) -> None:
    ended = warm.run(LIVES, *words, timeout=110)
    assert ended.returncode == 0, ended.stderr


def test_a_run_that_asks_outlives_every_kill_with_the_right_answers(cases):
    assert sum(case.name.isdigit() for case in cases) > 3
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
