"""A job is talked about at the terminal, left, and taken up again."""

import os

import pytest

import warm
from replan.testing import OpenAIServer
from terminals import REPLAN, Terminal

JOB = """\
name: tea
slots:
- {name: kind, question: Which tea?, choices: [green, black]}
- {name: cups, question: How many cups?, type: integer, minimum: 1}
commands:
- name: brew
  needs: [kind, cups]
  action: brew_it
actions:
- {type: brew_it, run: "kettle:brew"}
"""
KETTLE = "def brew(kind, cups):\n    return f'{cups} cups of {kind} tea'\n"


def said(tmp_path, lines, *words):
    told = tmp_path / "lines.txt"
    told.write_text("".join(f"{line}\n" for line in lines))
    storage = ["--storage", str(tmp_path / "runs.db")]
    job = ["--job", str(tmp_path / "tea.yaml")]
    with told.open() as stdin:
        return warm.run("-m", "replan", "chat", *job, *storage, *words, stdin=stdin.fileno())


def looked(tmp_path, *words):
    return warm.run("-m", "replan", *words, "--storage", str(tmp_path / "runs.db"))


def test_a_job_is_left_and_taken_up_again_at_the_terminal(tmp_path):
    (tmp_path / "tea.yaml").write_text(JOB)
    (tmp_path / "kettle.py").write_text(KETTLE)
    first = said(tmp_path, ["some tea please", "green", "/job"])
    assert first.returncode == 3, first.stderr
    assert "Which tea? Choose one of: green, black." in first.stdout
    assert "- collected: kind = green" in first.stdout
    again = said(tmp_path, ["three", "yes"], "--session", "last")
    assert again.returncode == 0, again.stderr
    assert "- cups: 3" in again.stdout
    assert "Result: 3 cups of green tea" in again.stdout
    listed = looked(tmp_path, "runs")
    assert "completed  1/1    tea   some tea please [session=" in listed.stdout, listed
    shown = looked(tmp_path, "show", "last")
    assert "step 1 tea asked (1/tea/1): Which tea? Choose one of: green, black." in shown.stdout
    assert "answered 1/tea/2: three" in shown.stdout
    assert "brew_it(kind=" in shown.stdout
    asks = "Green or black, dear?"
    with OpenAIServer({"phrase": [asks, "Which?"]}) as server:
        words = ("--phrasing-model", "openai:m", "--base-url", server.base_url)
        friendly = said(tmp_path, ["some tea please", "hello"], *words)
        server.assert_finished()
    assert asks in friendly.stdout, friendly.stderr
    assert "--phrasing-model openai:m" in friendly.stderr
    assert "warning: The question is asked in the words of the job" in friendly.stderr
    refused = said(tmp_path, [], "--team", str(tmp_path / "tea.yaml"))
    assert refused.returncode == 2
    assert "has one of --team, --job and --pipeline" in refused.stderr


def test_enter_alone_shows_again_what_a_job_asks(tmp_path, monkeypatch):
    (tmp_path / "tea.yaml").write_text(JOB)
    (tmp_path / "kettle.py").write_text(KETTLE)
    monkeypatch.chdir(tmp_path)
    words = ("chat", "--job", "tea.yaml", "--storage", "runs.db", "--plain")
    shown = Terminal((*REPLAN, *words), {**os.environ, "TERM": "xterm"})
    try:
        shown.wait_for("leaves.")
        shown.type("some tea please\r")
        shown.wait_for("Which tea?")
        shown.type("\r")
        shown.wait_for("Which tea?", times=2)
        shown.type("\x04")
        assert shown.end() == 3
    finally:
        shown.close()


@pytest.mark.parametrize("secret", ["", ", secret: true"])
def test_what_is_typed_for_a_job_with_secrets_is_in_no_history(tmp_path, monkeypatch, secret):
    (tmp_path / "tea.yaml").write_text(JOB.replace("question: Which tea?", f"question: T?{secret}"))
    (tmp_path / "kettle.py").write_text(KETTLE)
    monkeypatch.chdir(tmp_path)
    words = ("chat", "--job", "tea.yaml", "--storage", "runs.db")
    data = {"XDG_DATA_HOME": str(tmp_path / "data"), "TERM": "xterm"}
    shown = Terminal((*REPLAN, *words), {**os.environ, **data})
    try:
        shown.wait_for("leaves.")
        shown.type("kind: green\r")
        shown.wait_for("How many cups?")
    finally:
        shown.close()
    files = (tmp_path / "data").rglob("*")
    told = [each for each in files if each.is_file() and b"green" in each.read_bytes()]
    assert bool(told) is not bool(secret)
