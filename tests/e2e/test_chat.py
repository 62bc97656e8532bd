"""`replan chat` as a person has it on a terminal, and as a program has it with pipes."""

import os
import signal
import threading

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from replan.testing import Hang
from terminals import REPLAN, Terminal

ROOMS = """\
from pathlib import Path

from replan import ask_user


def paint(context):
    return f"{context.task_description}: {ask_user('Which colour?')}"


def pay(amount: int) -> str:
    '''Pay an amount.'''
    with (Path(__file__).parent / "paid").open("a") as file:
        file.write(f"{amount}\\n")
    return "paid"
"""
TEAM = """\
host: {model: "openai:scripted"}
specialists:
  - {name: painter, intended_use: Paints., run: "rooms:paint", effects: pure}
  - name: buyer
    intended_use: Buys.
    chat_model: "openai:scripted"
    tools: ["rooms:pay"]
    approve: [pay]
"""
PLAN = (
    "---\ncomplexity: complex\n---\n- [ ] 1. The hall @painter\n- [ ] 2. Buy it @buyer (after 1)\n"
)
PAY = AIMessage("", tool_calls=[{"name": "pay", "args": {"amount": 5}, "id": "p"}])


class Model:
    """Plans what is to be painted, answers everything else, and never ends with what is long."""

    def __init__(self):
        self.may_plan = threading.Event()
        self.hangs = False

    def __call__(self, request):
        said = str(request.messages[-1].content)
        if request.call.node == "think" and "Paint" in said:
            assert self.may_plan.wait(30)
            return PLAN
        if request.call.node == "think":
            return Hang() if "long" in said else "---\ncomplexity: simple\n---\nAs you like **it**."
        if request.call.step == 2 and self.hangs:
            return Hang()
        if request.call.step == 2:
            is_paid = any(isinstance(each, ToolMessage) for each in request.messages)
            return "Bought." if is_paid else PAY
        return "---\nverdict: complete\n---\nIt is painted and paid."


@pytest.fixture
def place(tmp_path, openai_server):
    """A folder with a team, and the environment that knows nothing but it and its model."""
    (tmp_path / "rooms.py").write_text(ROOMS)
    (tmp_path / "team.yaml").write_text(TEAM)
    model = Model()
    server = openai_server(model)
    base = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")}
    environment = {
        **base,
        "TERM": "xterm",
        "PROMPT_TOOLKIT_NO_CPR": "1",
        "OPENAI_BASE_URL": server.base_url,
        "OPENAI_API_KEY": "none",
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "REPLAN_STORAGE": str(tmp_path / "runs.db"),
    }
    return tmp_path, environment, model, server


@pytest.fixture
def talking(place, monkeypatch):
    """Start a conversation on a terminal."""
    folder, environment, *_ = place
    monkeypatch.chdir(folder)
    started = []

    def start(*arguments):
        command = (*REPLAN, "chat", "--team", "team.yaml", "--user", "eva", *arguments)
        started.append(Terminal(command, environment))
        started[-1].wait_for("leaves.")
        return started[-1]

    yield start
    for each in started:
        each.close()


def test_a_conversation_that_is_killed_while_it_asks_goes_on_and_is_interrupted(place, talking):
    folder, _, model, server = place
    shown = talking()
    shown.type("Hello\r")
    shown.wait_for("answered: 1 model call")
    shown.type("Paint the hall.\r")
    server.wait_for_requests(2)
    # What is typed before a question can be seen is no answer to it.
    shown.type("blue\r")
    model.may_plan.set()
    shown.wait_for("leave it open):")
    shown.type("grey\r")
    shown.wait_for("[a]pprove")
    shown.kill()
    assert not (folder / "paid").exists()
    # Another process asks for the same word, also where lines cannot be edited.
    shown = talking("-s", "last", "--plain")
    shown.wait_for("[a]pprove")
    leave_open_and_approve(shown, folder / "paid")
    assert (folder / "paid").read_text() == "5\n"
    steps = [request for request in server.requests if request.call.step == 2]
    assert len(steps) == 2
    assert "The hall: grey" in "".join(each.text for each in steps[0].messages)
    stop_and_leave(shown, server)


def test_an_answer_whose_turn_is_killed_is_not_asked_for_again(place, talking):
    _, _, model, server = place
    model.may_plan.set()
    model.hangs = True
    shown = talking()
    shown.type("Paint the hall.\r")
    shown.wait_for("leave it open):")
    shown.type("grey\r")
    # The answered step is done, and the next one is at work.
    server.wait_for_requests(2)
    shown.kill()
    model.hangs = False
    shown = talking("-s", "last", "--plain")
    shown.wait_for("The newest answers were not stored")
    shown.wait_for("resume later:")
    assert "leave it open):" not in shown.text
    shown.type("a\r")
    shown.wait_for("It is painted and paid.")
    steps = [request for request in server.requests if request.call.step == 2]
    assert "The hall: grey" in "".join(each.text for each in steps[-1].messages)


def leave_open_and_approve(shown, paid):
    """Leave an approval open, say yes where that is none, and approve."""
    shown.process.send_signal(signal.SIGINT)
    shown.wait_for("(1 open) > ")
    shown.type("yes, do it\r")
    shown.wait_for("A question or a plan waits for your answer first.")
    shown.wait_for("(1 open) > ", times=2)
    assert not paid.exists()
    shown.type("\r")
    shown.wait_for("[a]pprove", times=2)
    shown.type("a\r")
    shown.wait_for("It is painted and paid.")


def stop_and_leave(shown, server):
    """Stop what is long, at once, and leave."""
    shown.type("This takes long\r")
    server.wait_for_requests(len(server.requests) + 1)
    shown.process.send_signal(signal.SIGINT)
    shown.wait_for("press Ctrl-C again to stop immediately")
    shown.process.send_signal(signal.SIGINT)
    shown.wait_for("this message was not stored")
    shown.type("\x04")
    assert shown.end() == 0
    assert "continue with: replan chat --session " in shown.text
