"""Sixty mistakes that people make: each message has the cause and something to type, on a screen.

They stand in `mistakes.toml`: what is typed, the cause that is named, and what the fix says.
"""

import json
import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from replan import (
    Host,
    Price,
    ReplanError,
    Specialist,
    StorageError,
    Team,
    ask_user,
    open_runtime,
    open_storage,
    run_sync,
)
from replan.cli.main import app
from served import served

TABLE = tomllib.loads(Path(__file__).with_name("mistakes.toml").read_text("utf-8"))


def faults_in(text, cause, fix):
    """What is wrong with a message to a person; nothing if all is well."""
    # The frame that a terminal draws round it, and its line ends, are no part of it.
    said = " ".join(re.sub(r"[│╭╮╰╯─]", " ", text).split())
    lines = text.rstrip().splitlines()
    checks = {
        "no cause": cause in said,
        "no fix": fix in said,
        "no screen": len(lines) <= 20 and len(text) <= 900,
        "frames": "Traceback" not in text and 'File "' not in text,
        "an address": " at 0x" not in text,
        "words of a library": "Input should" not in text and "Value error" not in text,
    }
    return [name for name, is_well in checks.items() if not is_well]


def folder_with(tmp_path, monkeypatch):
    for name, content in TABLE["files"].items():
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    # Another test has imported another file of this name.
    monkeypatch.delitem(sys.modules, "tools_here", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "REPLAN_STORAGE", "REPLAN_MODEL"):
        monkeypatch.delenv(name, raising=False)


def typed(words):
    result = CliRunner().invoke(app, shlex.split(words), env={"COLUMNS": "80"})
    unexpected = [] if isinstance(result.exception, SystemExit | None) else [result.exception]
    return result.stdout + result.stderr, result.exit_code, unexpected


def test_what_is_mistyped_at_the_terminal(tmp_path, monkeypatch):
    folder_with(tmp_path, monkeypatch)
    bad = {}
    for words, cause, fix in TABLE["typed"]:
        text, code, found = typed(words)
        found += faults_in(text, cause, fix) + ([f"exit code {code}"] if code != 2 else [])
        bad |= {words: (found, text)} if found else {}
    assert bad == {}


def test_what_is_wrong_in_a_team_file(tmp_path, monkeypatch):
    folder_with(tmp_path, monkeypatch)
    bad = {}
    for content, cause, fix in TABLE["written"]:
        (tmp_path / "team.yaml").write_text(content)
        text, code, found = typed("run plan.md --team team.yaml")
        found += faults_in(text, cause, fix) + ([f"exit code {code}"] if code != 2 else [])
        found += [] if "team.yaml:" in text else ["no place"]
        bad |= {content: (found, text)} if found else {}
    assert bad == {}


async def test_what_is_wrong_in_a_request():
    clerk = Specialist("clerk", "Asks.", run=lambda _: ask_user("How many?"), effects="pure")
    bad = {}
    async with served(Team(Host("offline"), [clerk], name="house")) as client:
        run = {"plan": "- [ ] 1. Ask @clerk\n", "run_id": "w"}
        assert (await client.post("/runs", json=run)).status_code == 201
        while (await client.get("/runs/w")).json()["outcome"] != "waiting":
            pass
        for request, body, cause, fix in TABLE["sent"]:
            method, path = request.split()
            answer = await client.request(method, path, json=json.loads(body))
            problem = answer.json()
            fixes = " ".join(each["fix"] for each in problem["mistakes"])
            found = faults_in(f"{problem['detail']} {fixes}", cause, fix)
            found += [] if 400 <= answer.status_code < 500 else [answer.status_code]
            bad |= {(request, body): (found, problem)} if found else {}
    assert bad == {}


def test_what_is_wrong_in_a_program():
    team = Team(Host("offline"), [Specialist("clerk", "Files.", run=lambda _: "filed")])
    bad = {}
    for wrong, cause, fix in (
        (lambda: Price(input="1 EUR", output=2), "input: this must be a number", "Write a number"),
        (lambda: run_sync(team, {"plan": ["- [ ] 1. A"]}), "The plan is a list", "in Markdown"),
        (lambda: open_runtime(team, storage=5).__enter__(), "no storage (got 5)", "Give a path"),
        (lambda: Team([], Host("offline")), "host: this is a list", "the host first"),
    ):
        with pytest.raises(ReplanError) as refused:
            wrong()
        found = faults_in(str(refused.value), cause, fix)
        bad |= {cause: (found, str(refused.value))} if found else {}
    assert bad == {}


async def test_a_database_that_is_down_is_named_without_talk_of_runs():
    with pytest.raises(StorageError) as refused:
        async with open_storage("postgresql://nobody@127.0.0.1:1/x", patience=0.1):
            pass
    text = str(refused.value)
    assert faults_in(text, "server cannot be reached", "Start it, or fix the address") == []
    assert "resume" not in text
    assert "nobody" not in text
