"""A job is talked about at the terminal, left, and taken up again."""

import os

import pytest

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


def test_a_job_is_a_conversation_and_no_plan_is_drawn_between_its_lines(tmp_path, monkeypatch):
    (tmp_path / "tea.yaml").write_text(JOB)
    (tmp_path / "kettle.py").write_text(KETTLE)
    monkeypatch.chdir(tmp_path)
    words = ("chat", "--job", "tea.yaml", "--storage", "runs.db")
    shown = Terminal((*REPLAN, *words), {**os.environ, "TERM": "xterm"})
    try:
        shown.wait_for("leaves.")
        shown.type("some tea please\r")
        shown.wait_for("Which tea?")
        shown.type("green\r")
        shown.wait_for("How many cups?")
        shown.type("2\r")
        shown.wait_for("Shall I do it?")
        shown.type("yes\r")
        # Before the next line can be typed, the terminal would take it as a control of its own.
        shown.wait_for("2 cups of green tea\n>")
        shown.type("\x04")
        assert shown.end() == 0
        told = shown.text
    finally:
        shown.close()
    drawn = [line for line in told.splitlines() if "asks:" in line or " of 1 done" in line]
    assert drawn == []


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
