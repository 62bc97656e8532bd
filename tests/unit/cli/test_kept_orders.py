"""What a kept run would write, import or send somewhere is this user's own word, or asked again."""

import json
import re
import sqlite3
import stat
from contextlib import closing

import pytest
from typer.testing import CliRunner

from replan.cli.main import app
from replan.testing import OpenAIServer

TOOLS = 'open("imported", "w").close()\ndef work(context): return "done"\n'
TEAM = """host: {model: offline}
specialists: [{name: calculator, intended_use: Works., run: "foreign_tools:work"}]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("REPLAN_STORAGE", str(tmp_path / "runs.db"))
    (tmp_path / "plan.md").write_text("- [ ] 1. calculate 1 + 1 @calculator\n")
    return tmp_path


def typed(*words):
    done = CliRunner().invoke(app, [*map(str, words)])
    assert "Traceback" not in done.output
    return done


def begun(*options):
    """Begin a run that waits for approval, and give its id."""
    done = typed("run", "plan.md", "--approve", "always", *options)
    assert done.exit_code == 3
    return re.search(r"^run (\w+)$", done.output, re.MULTILINE)[1]


def changed(folder, **fields):
    """Change a kept order as somebody would who can write the storage."""
    with closing(sqlite3.connect(folder / "runs.db")) as connection:
        ((data,),) = connection.execute("SELECT team_order FROM replan_runs").fetchall()
        order = {**json.loads(data), **fields}
        connection.execute("UPDATE replan_runs SET team_order = ?", [json.dumps(order).encode()])
        connection.commit()


def test_ones_own_run_goes_on_without_saying_anything_again(folder):
    run = begun("--plan-out", "out.md")
    assert typed("resume", run, "--answer", "approve").exit_code == 0
    assert "[x] 1." in (folder / "out.md").read_text()


def test_a_log_is_for_this_user_alone(folder):
    begun("--log-file", "log")
    assert stat.S_IMODE((folder / "log").stat().st_mode) == 0o600


def test_the_key_is_made_for_this_user_alone(folder):
    begun()
    key = folder / "config" / "replan" / "order.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    assert len(key.read_bytes()) == 32
    assert [each.name for each in key.parent.iterdir()] == ["order.key"]


def test_a_file_that_somebody_else_named_is_not_written(folder):
    run = begun()
    (folder / "profile").write_text("mine\n")
    changed(folder, plan_out=str(folder / "profile"))
    done = typed("resume", run, "--answer", "approve")
    assert done.exit_code == 2
    assert "writes its plan to" in done.output
    assert "(--plan-out)" in done.output
    assert (folder / "profile").read_text() == "mine\n"
    again = typed("resume", run, "--answer", "approve", "--dir", folder, "--plan-out", "out.md")
    assert (again.exit_code, (folder / "profile").read_text()) == (0, "mine\n")
    assert "[x] 1." in (folder / "out.md").read_text()


def test_a_team_that_somebody_else_named_is_not_imported(folder):
    run = begun()
    (folder / "foreign_tools.py").write_text(TOOLS)
    (folder / "team.yaml").write_text(TEAM)
    changed(folder, team=str(folder / "team.yaml"), directory=None)
    done = typed("resume", run, "--answer", "approve")
    assert (done.exit_code, (folder / "imported").exists()) == (2, False)
    assert "imports the team" in done.output
    assert typed("resume", run, "--answer", "approve", "--team", "team.yaml").exit_code == 0


def test_no_key_is_sent_to_a_server_that_somebody_else_named(folder, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-everybody")
    run = begun()
    with OpenAIServer({}) as server:
        changed(folder, model="openai:gpt-x", base_url=server.base_url)
        done = typed("resume", run, "--answer", "reject: another one")
        assert (done.exit_code, len(server.requests)) == (2, 0)
    assert "sends prompts and a key to" in done.output


def test_the_order_of_another_run_is_no_order_for_this_one(folder):
    other = begun("--plan-out", "other.md")
    with closing(sqlite3.connect(folder / "runs.db")) as connection:
        ((order,),) = connection.execute("SELECT team_order FROM replan_runs").fetchall()
    assert typed("rm", other, "--yes").exit_code == 0
    run = begun()
    with closing(sqlite3.connect(folder / "runs.db")) as connection:
        connection.execute("UPDATE replan_runs SET team_order = ?", [order])
        connection.commit()
    assert "(--plan-out)" in typed("resume", run, "--answer", "approve").output


@pytest.mark.parametrize("key", [None, b"", b"x" * 32])
def test_another_users_run_is_not_ones_own(folder, key):
    run = begun()
    path = folder / "config" / "replan" / "order.key"
    path.unlink() if key is None else path.write_bytes(key)
    done = typed("resume", run, "--answer", "approve")
    assert (done.exit_code, "reads files in" in done.output) == (2, True)
    assert typed("resume", run, "--answer", "approve", "--dir", folder).exit_code == 0


def test_a_run_begins_where_no_key_can_be_kept(folder):
    (folder / "config").write_text("no folder")
    assert "(--dir)" in typed("resume", begun(), "--answer", "approve").output


def test_a_file_that_an_order_names_is_not_sent_unasked(folder):
    run = begun()
    (folder / "secret.txt").write_text("hush")
    changed(folder, files=[str(folder / "secret.txt")])
    done = typed("resume", run, "--answer", "plan=approve")
    assert done.exit_code == 2
    assert "sends the file" in done.output
