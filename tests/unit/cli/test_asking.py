"""A person is asked at a desk: what they type, and what comes of it."""

import asyncio
import io
import os
import pty
import threading

import pytest

from replan.cli.desk.dialogs import Desk, Quit, answer
from replan.cli.desk.interview import Interview
from replan.cli.desk.keyboard import Keyboard
from replan.errors import StorageError
from replan.state.questions import Question


class Person:
    """Somebody who types on a terminal."""

    def __init__(self):
        self._keys, self.reads = pty.openpty()

    def types(self, *lines):
        os.write(self._keys, "".join(f"{line}\n" for line in lines).encode())

    def leaves(self):
        os.write(self._keys, b"\x04\x04")

    def close(self):
        os.close(self._keys)
        # A reader that is left reads its end; later it would read for whoever gets the number.
        for each in threading.enumerate():
            if each.name == "replan-keyboard":
                each.join()
        os.close(self.reads)


@pytest.fixture
def person():
    somebody = Person()
    yield somebody
    somebody.close()


class Screen(io.StringIO):
    """What a person sees; who is to answer types a line as soon as a prompt stands there."""

    def __init__(self, person):
        super().__init__()
        self.person, self.answers = person, []

    def flush(self):
        super().flush()
        if self.answers and self.getvalue().endswith(": "):
            line = self.answers.pop(0)
            self.person.types(line) if line else self.person.leaves()


@pytest.fixture
def seen(person):
    return Screen(person)


@pytest.fixture
def desk(person, seen, tmp_path):
    editing = []
    made = Desk(Keyboard(person.reads), seen, {"EDITOR": "false"}, editing.append)
    yield made
    assert editing == [True, False] * (len(editing) // 2), "the terminal comes back"


def ask(kind="question", **fields):
    return Question(**{"key": "1/writer/1", "kind": kind, "text": "Why?", **fields})


def editor(tmp_path, script):
    path = tmp_path / "editor.sh"
    path.write_text(f'#!/bin/sh\n{script} "$1"\n')
    path.chmod(0o755)
    return str(path)


async def test_a_line_that_nobody_waits_for_any_more_answers_the_next_question(person):
    keyboard = Keyboard(person.reads)
    waiting = asyncio.create_task(keyboard.line())
    await asyncio.sleep(0)  # let it begin
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    person.types("late")
    assert await keyboard.line() == "late"


async def test_a_terminal_that_is_gone_is_an_end(tmp_path):
    # A folder can be opened, but not read.
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        assert await Keyboard(folder).line() is None
    finally:
        os.close(folder)


async def test_a_question_is_asked_until_there_is_an_answer(desk, person, seen):
    person.types("  ", "Because.")
    assert await answer(ask(who="step 1 writer", details={"a": 1}), desk) == "Because."
    assert seen.getvalue().startswith('\nstep 1 writer asks: Why?\n| {\n|   "a": 1\n| }\nanswer (')


@pytest.mark.parametrize(
    ("asked", "wrong", "right"),
    [
        ({"details": {"choices": ["red", "blue"]}}, "green", "red"),
        ({"kind": "unknown_outcome"}, "perhaps", "run again"),
    ],
)
async def test_what_is_no_answer_is_asked_for_again_at_once(
    asked, wrong, right, desk, person, seen
):
    person.types(wrong, right)
    assert await answer(ask(**asked), desk) == right
    assert seen.getvalue().count("answer (Ctrl-D to leave it open): ") == 2
    assert "The answer to 1/writer/1 " in seen.getvalue()


@pytest.mark.parametrize("kind", ["question", "approval", "plan"])
@pytest.mark.parametrize(
    "text",
    [
        "Why?\n\nwriter: pay(amount=1)\n[a]pprove, [e]dit, [r]eject, [q]uit and resume later: ",
        "Why?" + " " * 300 + "[a]pprove, [e]dit, [r]eject, [q]uit and resume later: ",
        "Why?" + "\u2800" * 300 + "[a]pprove, [e]dit, [r]eject, [q]uit and resume later: ",
        "Why?\r\x0b\x0c\x85\u2028[a]pprove, [e]dit, [r]eject, [q]uit and resume later: ",
    ],
)
async def test_a_question_cannot_draw_a_prompt_of_ours(desk, person, seen, kind, text):
    person.leaves()
    details = {"arguments": {"x": text}}
    with pytest.raises(Quit):
        await answer(ask(kind, who="step 1 writer", text=text, details=details), desk, [text])
    lines = seen.getvalue().splitlines()
    ours = [line for line in lines if line.startswith(("[a]pprove", "writer:", "answer ("))]
    assert len(ours) == 1
    assert all(len(line) < 100 for line in lines)


async def test_what_a_decision_rests_on_is_shown_below_the_question(desk, person, seen):
    person.types("a")
    asked = ask("approval", details=CALL)
    await answer(asked, desk, ["said before: Now.", "rests on:", "  look(): 9"])
    assert "| said before: Now.\n| rests on:\n|   look(): 9\n[a]pprove" in seen.getvalue()


async def test_a_text_of_a_model_does_not_steer_the_terminal(desk, person, seen):
    person.types("x")
    await answer(ask(text="\x1b[2JWhy?"), desk)
    assert "\x1b" not in seen.getvalue()


CALL = {"tool": "mail", "arguments": {"to": "all"}}


@pytest.mark.parametrize(
    ("typed", "given"),
    [
        (["a"], {"action": "approve"}),
        (["?", "Approve"], {"action": "approve"}),
        (["r", "too many"], {"action": "reject", "reason": "too many"}),
        (["r", ""], {"action": "reject"}),
    ],
)
async def test_a_tool_call_is_decided(desk, person, seen, typed, given):
    person.types(*typed)
    assert await answer(ask("approval", details=CALL), desk) == given


async def test_the_arguments_of_a_tool_call_can_be_changed(desk, person, seen, tmp_path):
    desk.environment["EDITOR"] = editor(tmp_path, "sed -i s/all/me/")
    person.types("e")
    given = await answer(ask("approval", details=CALL), desk)
    assert given == {"action": "edit", "arguments": {"to": "me"}}


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("echo oops >", "These are not arguments (line 1, column 1: "),
        ("echo '[]' >", "These are not arguments. Write JSON"),
        ("printf '\\377' >", "cannot be read"),
        ("false", "ended with 1"),
    ],
)
async def test_an_edition_that_cannot_be_taken_is_said(
    desk, person, seen, tmp_path, script, complaint
):
    desk.environment["EDITOR"] = editor(tmp_path, script)
    person.types("e", "a")
    assert await answer(ask("approval", details=CALL), desk) == {"action": "approve"}
    assert "Nothing was applied" in seen.getvalue()
    assert complaint in seen.getvalue()


@pytest.mark.parametrize("command", ["/no/such/editor", "'unclosed"])
async def test_a_missing_editor_is_said(desk, person, seen, command):
    desk.environment["VISUAL"] = command
    person.types("e", "q")
    with pytest.raises(Quit):
        await answer(ask("plan", text="- [ ] 1. Go"), desk)
    assert "cannot be started" in seen.getvalue()


@pytest.mark.parametrize(
    "asked", [ask("plan", text="- [ ] 1. Go"), ask("approval", details=CALL)], ids=str
)
async def test_an_editor_that_changes_nothing_approves_of_nothing(desk, person, seen, asked):
    desk.environment["EDITOR"] = "true"
    person.types("e", "q")
    with pytest.raises(Quit):
        await answer(asked, desk)
    assert "Nothing was changed.\nNothing was applied" in seen.getvalue()


async def test_what_is_said_after_a_withdrawn_question_begins_a_line(desk, seen):
    asked = asyncio.create_task(answer(ask(), desk))
    await asyncio.sleep(0)  # let it begin
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert seen.getvalue().endswith("open): \n")


class Talk:
    """What an interview gives and when it talks."""

    def __init__(self, desk, give=None):
        self.given, self.turns = {}, []
        self.interview = Interview(
            desk,
            give=give or self.give,
            talking=lambda ask: self.turns.append(ask is not None),
            evidence=self.evidence,
        )

    async def evidence(self, asked):
        return []

    async def give(self, asked, given):
        self.given[asked.key] = given


async def test_what_is_left_open_is_not_asked_again(desk, seen):
    talk = Talk(desk)
    seen.answers = [None, None]
    assert not await talk.interview.wait_for_answer([ask(), ask(key="2/writer/1")])
    assert not await talk.interview.wait_for_answer([ask()])
    await talk.interview.close()
    assert talk.turns == [True, False, True, False]


async def test_keys_that_were_typed_ahead_answer_no_question(desk, person, seen):
    person.types("a")
    person.types("a", "half a li")
    seen.answers = ["r", "no"]
    talk, asked = Talk(desk), ask("approval", key="1/writer/1", details=CALL)
    assert await talk.interview.wait_for_answer([asked])
    assert talk.given == {"1/writer/1": {"action": "reject", "reason": "no"}}
    await talk.interview.close()


async def test_a_line_for_a_withdrawn_question_answers_no_other_one(desk, person, seen):
    keyboard = desk.keyboard
    waiting = asyncio.create_task(keyboard.line())
    await asyncio.sleep(0)  # let it begin
    waiting.cancel()
    person.types("a")
    await keyboard._coming  # noqa: SLF001 - by then the line was read
    seen.answers = ["r", "no"]
    talk = Talk(desk)
    assert await talk.interview.wait_for_answer([ask("approval", details=CALL)])
    assert talk.given["1/writer/1"]["action"] == "reject"
    await talk.interview.close()


async def test_an_answer_that_cannot_be_kept_is_an_error(desk, seen):
    async def fail(*_):
        raise StorageError("runs.db", "It is full.", "Free some space.")

    talk = Talk(desk, fail)
    seen.answers = ["Because."]
    with pytest.raises(StorageError):
        await talk.interview.wait_for_answer([ask()])
    with pytest.raises(StorageError):
        await talk.interview.close()
