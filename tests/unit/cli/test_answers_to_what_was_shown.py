"""At the terminal an answer without a key is about what this user was shown last."""

import asyncio
import json
import sys

import pytest
from typer.testing import CliRunner

from replan import open_runtime
from replan.cli.main import app

TOOLS = """
from pathlib import Path

from replan.ports.ask_user import ask


def pay(context):
    for amount in (5, 9999):
        details = {"tool": "pay", "arguments": {"amount": amount}}
        if ask(f"May {amount} be paid?", kind="approval", details=details)["action"] == "approve":
            Path(f"paid-{amount}").touch()
    return ask("Any note?")
"""
TEAM = """
host: {model: offline}
specialists:
  - {name: bank, intended_use: Pays., run: "bank_tools:pay", effects: pure}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("CONFIG", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("REPLAN_STORAGE", str(tmp_path / "runs.db"))
    (tmp_path / "bank_tools.py").write_text(TOOLS)
    (tmp_path / "team.yaml").write_text(TEAM)
    (tmp_path / "plan.md").write_text("- [ ] 1. Pay @bank\n")
    monkeypatch.delitem(sys.modules, "bank_tools", raising=False)
    begun = typed("run", "plan.md", "--team", "team.yaml")
    assert begun.exit_code == 3, begun.output
    assert "--answer approve" in begun.output
    return tmp_path


def typed(*words):
    return CliRunner().invoke(app, [*map(str, words)])


def paid(folder):
    return sorted(each.name.removeprefix("paid-") for each in folder.glob("paid-*"))


def elsewhere(folder, answer):
    """Another person answers the open question at another door."""

    async def answered():
        async with open_runtime(folder / "team.yaml", storage=folder / "runs.db") as runtime:
            (view,) = await runtime.runs()
            await (await runtime.answer(view.run_id, {view.pending_questions[0].key: answer}))

    asyncio.run(answered())


def test_a_word_is_about_what_was_printed_last(folder):
    assert typed("resume", "last", "--answer", "approve").exit_code == 3
    assert paid(folder) == ["5"]
    # The second question was printed by that, so this is about it.
    assert typed("resume", "last", "--answer", "reject").exit_code == 3
    assert typed("resume", "last", "--answer", "none").exit_code == 0
    assert paid(folder) == ["5"]


def test_a_word_about_what_another_person_answered_meanwhile_is_refused(folder):
    elsewhere(folder, "reject: no")
    refused = typed("resume", "last", "--answer", "approve")
    assert refused.exit_code == 2
    assert "does not answer what is asked now" in refused.output
    assert "May 9999 be paid?" in refused.output
    assert paid(folder) == []
    # Now it was printed.
    assert typed("resume", "last", "--answer", "approve").exit_code == 3
    assert paid(folder) == ["9999"]


@pytest.mark.parametrize("answer", ["3/seats/1=approve", "1/bank/9=approve", "7=approve"])
def test_a_key_that_is_not_open_is_refused(folder, answer):
    refused = typed("resume", "last", "--answer", answer)
    assert refused.exit_code == 2
    assert "No open question has the key" in refused.output
    assert paid(folder) == []


def test_a_plain_question_takes_no_answer_by_a_key_that_was_answered_before(folder):
    for word in ("1/bank/1=approve", "1/bank/2=reject"):
        assert typed("resume", "last", "--answer", word).exit_code == 3
    again = typed("resume", "last", "--answer", "1/bank/2=reject")
    assert (again.exit_code, "open: '1/bank/3'" in again.output) == (2, True)
    assert typed("resume", "last", "--answer", "1/bank/3=a=b").exit_code == 0
    kept = json.loads(typed("show", "last", "--json").stdout)
    assert "a=b" in json.dumps(kept)


def test_where_nothing_was_shown_a_decision_needs_its_whole_key(folder, monkeypatch):
    for user, word in (("another", "approve"), ("a third", "1=approve")):
        monkeypatch.setattr("getpass.getuser", lambda user=user: user)
        refused = typed("resume", "last", "--answer", word)
        assert (refused.exit_code, "whole key" in refused.output) == (2, True)
        assert paid(folder) == []
