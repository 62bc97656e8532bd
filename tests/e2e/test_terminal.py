"""`replan run` on a real terminal: 60 columns and 20 lines, as a person sees it."""

import asyncio
import json
import os
import re
import signal
import threading
import time

import pytest
from rich.cells import cell_len

from replan.testing import Hang, Reply
from terminals import COLUMNS, CONTROL, PATIENCE, REPLAN, Terminal

PLAN = """\
---
complexity: complex
---
# Compare two policies 比較 with [bold]markup[/bold] in the title of the plan

- [ ] 1. Find the EU's current EV policy, with all of its amendments @researcher
- [ ] 2. 米国の現在の電気自動車政策を調べて、補助金と関税と充電設備についてまとめる @researcher
- [ ] 3. Compare both @analyst (after 1, 2)
"""
ANSWER = "The EU sets **targets**, the US leans on [red]credits[/red].\n\n- one\n- two"
JUDGED = f"---\nverdict: complete\nfeedback: Compared.\n---\n{ANSWER}"
REPLIES = {
    "think": PLAN,
    "step 1": "EU.",
    "step 2": "US \x1b[2Jtext.",
    "step 3": "They differ.",
    "feedback": JUDGED,
}
TEAM = """\
host: {model: "openai:scripted"}
specialists:
  - {name: researcher, intended_use: Finds facts., chat_model: "openai:scripted"}
  - {name: analyst, intended_use: Compares things., chat_model: "openai:scripted"}
"""


def drawn(shown: Terminal) -> list[str]:
    """Each line that was ever drawn, also where another one was drawn over it."""
    return re.split(r"[\r\n]+", CONTROL.sub("", shown.raw))


@pytest.fixture
def terminal(tmp_path, openai_server):
    """Start `replan` on a terminal, with a scripted model behind HTTP."""
    team = tmp_path / "team.yaml"
    team.write_text(TEAM)
    started = []

    def start(*arguments, replies=REPLIES, own_team=True, **variables):
        server = openai_server(replies)
        base = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")}
        environment = {
            **base,
            "TERM": "xterm-256color",
            "OPENAI_API_KEY": "sk-none",
            "OPENAI_BASE_URL": server.base_url,
            "PYTHONIOENCODING": "utf-8",
            "PAGER": "",
            **variables,
        }
        command = [*REPLAN, *arguments]
        command += ["--team", str(team)] if own_team else []
        started.append(Terminal(command, environment))
        return started[-1]

    yield start
    for each in started:
        each.close()


def test_a_plan_lives_on_a_terminal_of_60_columns(terminal, tmp_path):
    seen = threading.Event()

    async def compared(_):
        await asyncio.to_thread(seen.wait, PATIENCE)
        return "They differ."

    replies = {**REPLIES, "step 3": compared}
    out = tmp_path / "plan.md"
    shown = terminal("run", "Compare.", "--plan-out", str(out), replies=replies)
    shown.wait_for("2 of 3 done, 1 running")
    seen.set()
    assert shown.end() == 0
    assert "\x1b[?25l" in shown.raw, "the cursor is hidden while the plan lives"
    assert shown.raw.rindex("\x1b[?25h") > shown.raw.rindex("\x1b[?25l")
    assert "\x1b[2J" not in shown.raw, "no text of a model steers the terminal"
    last = shown.text[shown.text.rindex("Compare two policies 比較") :].splitlines()
    assert last[0] == "Compare two policies 比較 with [bold]markup[/bold] in the…"
    assert [line[:3] for line in last[1:4]] == ["✓ 1", "✓ 2", "✓ 3"]
    assert last[4:9] == [
        "",
        "The EU sets targets, the US leans on [red]credits[/red].",
        "",
        " • one",
        " • two",
    ]
    assert "\x1b[1mtargets\x1b[0m" in shown.raw
    assert re.fullmatch(r"completed: 5 model calls, \d+ tokens, [\d.]+ s", last[-1])
    assert all(cell_len(line) < COLUMNS for line in drawn(shown))
    assert "- [x] 3. Compare both @analyst (after 1, 2)" in out.read_text()


def test_the_notice_of_the_offline_model_is_broken_between_words(terminal):
    shown = terminal("run", "calculate 2 + 2", replies={}, own_team=False)
    assert shown.end() == 0
    lines = drawn(shown)[1:]
    assert lines[0].startswith("Offline model: plans commands and plan documents by fixed")
    assert lines[1].startswith("rules and joins results; it")
    assert [line for line in lines if cell_len(line) >= COLUMNS] == []


def test_a_terminal_without_colour_gets_none(terminal):
    shown = terminal("run", "Compare.", NO_COLOR="1")
    assert shown.end() == 0
    assert "✓ 3" in shown.text
    assert not re.search(r"\x1b\[(?:\d+;)*3[0-7]", shown.raw)


def test_a_dumb_terminal_gets_lines(terminal):
    shown = terminal("run", "Compare.", TERM="dumb")
    assert shown.end() == 0
    assert "\x1b" not in shown.raw
    assert "[x] step 3 analyst" in shown.text


@pytest.mark.parametrize(
    ("option", "answer"),
    [("--quiet", "The EU sets targets, the US"), ("--plain", "The EU sets **targets**, the US")],
)
def test_an_answer_is_shown_as_markdown_unless_plain_lines_are_wanted(terminal, option, answer):
    shown = terminal("run", "Compare.", option)
    assert shown.end() == 0
    assert answer in shown.text
    assert ("\x1b" in shown.raw) is (option == "--quiet")
    assert ("[x] step 3 analyst" in shown.text) is (option == "--plain")


def test_a_kept_answer_is_shown_as_markdown(terminal):
    assert terminal("run", "Compare.").end() == 0
    shown = terminal("show", "last", replies={}, own_team=False)
    assert shown.end() == 0
    assert "answer:\n  The EU sets targets, the US leans on" in shown.text
    plain = terminal("show", "last", "--plain", replies={}, own_team=False)
    assert plain.end() == 0
    assert "answer:\n  The EU sets **targets**" in plain.text


def test_what_is_longer_than_the_window_goes_through_the_pager(terminal):
    assert terminal("run", "Compare.").end() == 0
    shown = terminal("show", "last", replies={}, own_team=False, PAGER="sed s/^/paged:/")
    assert shown.end() == 0
    assert "paged:run " in shown.text
    assert "paged:answer:" in shown.text
    short = terminal("show", "last", "-s", "1", replies={}, own_team=False, PAGER="sed s/^/paged:/")
    assert short.end() == 0
    assert "paged:" not in short.text


def test_json_on_a_terminal_is_json_and_nothing_else(terminal):
    shown = terminal("run", "Compare.", "--json")
    assert shown.end() == 0
    assert [json.loads(line)["seq"] for line in shown.text.splitlines()][:3] == [1, 2, 3]


def test_ctrl_c_leaves_the_plan_as_it_is_and_the_terminal_in_order(terminal, tmp_path):
    out = tmp_path / "plan.md"
    replies = {"think": PLAN, "step 1": "EU.", "step 2": Reply(fault=Hang())}
    shown = terminal(
        "run", "Compare.", "--plan-out", str(out), "--shutdown-timeout", "0", replies=replies
    )
    shown.wait_for("1 of 3 done")
    begun = time.monotonic()
    os.kill(shown.process.pid, signal.SIGINT)
    assert shown.end() == 130
    assert time.monotonic() - begun < PATIENCE / 2
    assert shown.raw.rindex("\x1b[?25h") > shown.raw.rindex("\x1b[?25l")
    last = shown.text[shown.text.rindex("Compare two policies 比較") :]
    assert "✓ 1 Find" in last
    assert "· 2 米国" in last
    assert "    stopped" in last
    assert "interrupted: 1 of 3 steps done" in last
    assert "Traceback" not in shown.text
    assert "- [x] 1. Find the EU" in out.read_text()
    assert "> EU." in out.read_text()
    assert "- [ ] 2. 米国" in out.read_text()


TOOLS = """\
import asyncio
from pathlib import Path


async def price(item: str) -> str:
    \"\"\"Look up a price.\"\"\"
    await asyncio.to_thread((Path(__file__).parent / "gate").read_text)
    return f"{item}: 4 EUR"
"""
BUYERS = """\
host: {model: "openai:scripted"}
specialists:
  - name: buyer
    intended_use: Buys things.
    chat_model: "openai:scripted"
    tools: ['priced_tools:price']
"""
BUY = "---\ncomplexity: complex\n---\n- [ ] 1. Buy a chair @buyer\n- [ ] 2. Sit @buyer (after 1)\n"


@pytest.fixture
def shop(terminal, tmp_path):
    """Start a run whose first step calls a tool that waits at a gate."""
    (tmp_path / "priced_tools.py").write_text(TOOLS)
    (tmp_path / "buyers.yaml").write_text(BUYERS)
    os.mkfifo(tmp_path / "gate")
    arguments = {"item": "chair \x1b[2J\u202e", "key": "sk-very-secret-key"}
    call = {"name": "price", "args": arguments, "id": "1", "type": "tool_call"}
    replies = {
        "think": BUY,
        "step 1": [Reply(tool_calls=[call]), "Bought\nand paid."],
        "step 2": "Sat.",
        "feedback": "---\nverdict: complete\n---\nDone.",
    }

    def start(*options):
        words = ("run", "Buy.", "--team", str(tmp_path / "buyers.yaml"), *options)
        secret = {"OPENAI_API_KEY": "sk-very-secret-key"}
        return terminal(*words, replies=replies, own_team=False, **secret)

    start.gate = tmp_path / "gate"
    return start


def test_a_step_shows_which_tool_it_calls_and_nothing_in_it_steers_or_is_secret(shop):
    shown = shop()
    shown.wait_for("calls price(")
    shown.wait_for("Sit  waits for 1")
    shop.gate.write_text("open")
    assert shown.end() == 0
    assert "\x1b[2J" not in shown.raw
    assert "\u202e" not in shown.raw
    assert "sk-very-secret-key" not in shown.raw
    assert "✓ 2 Sit" in shown.text


@pytest.mark.parametrize("options", [(), ("--plain",)], ids=["live", "plain"])
def test_verbose_tells_the_same_calls_and_words_however_a_run_is_told(shop, options):
    shown = shop("--verbose", *options)
    shown.wait_for("step 1 buyer calls price(")
    shop.gate.write_text("open")
    assert shown.end() == 0
    told = re.sub(r"\s+", " ", shown.text)
    for line in (
        "step 1 buyer asks model scripted",
        "step 1 buyer is answered by scripted (",
        "step 1 buyer has called price, success: chair",
        "step 1 buyer | Bought",
        "step 1 buyer | and paid.",
    ):
        assert line in told
