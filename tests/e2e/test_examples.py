"""Every program in `examples` runs as it stands, and prints what it is there to show."""

import ast
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import warm
from replan.testing import ChatRequest, OpenAIServer

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = sorted(path.name for path in EXAMPLES.glob("*.py"))
LONGEST = 120

SHOWN = {
    "approve_a_plan.py": [
        "A plan was handed in.\n- [ ] 1. Boil water @cook\n- [ ] 2. Boil an egg @cook (after 1)\n",
        "rejected for now: line 2, column 35: Step 2 waits for step 9",
        "- [x] 2. Boil two eggs @cook (after 1)",
        "version 2, changed by person\n",
    ],
    "ask_a_person.py": [
        "1/painter/1: Which colour for the hall?\n2/painter/1: Which colour for the attic?\n",
        "already done: 3/cleaner\n",
        "the attic is grey\nstill open: 1/painter/1\n",
        "the hall is blue\ncompleted\n",
    ],
    "callbacks.py": [
        "Tea: 2 steps\n1/kettle: success\n2/pot: success\n",
        "completed, model calls: 1\n2 times were noted\n",
    ],
    "facts.py": [
        "eva: Remember that I need invoices as PDF.\nRemembered as fact ",
        "event: fact_remembered, I need invoices as PDF.\n",
        "> I need invoices as PDF.\n",
        "bob: What do you know about invoices?\nNothing is remembered of this user.\n",
        "known of eva: ['I need invoices as PDF.']\nknown of bob: []\n",
    ],
    "first_team.py": [
        "- [x] 3. order @buyer (after 1, 2)\n\n  > Ordered for a stock of 14 lamps and 3 desks.\n",
        "\n---\n3 of 3 steps are done, by clerk, buyer.\n",
    ],
    "function_specialist.py": [
        "1/sensor success hall: 21 degrees\n",
        "2/sensor failed There is no sensor in the cellar.\n",
        "3/scribe success ['log.txt']\nhall: 21 degrees\npartial\n",
    ],
    "graph_specialist.py": ["4 words, 3 of them different\n"],
    "http_door.py": [
        '"steps": {"1": "waiting"}, "waiting": {"1/painter/1": "Colour?"}}\n',
        "9 more events\n",
        '{"outcome": "completed", "steps": {"1": "completed"}, "waiting": {}}\n',
    ],
    "limits.py": [
        "111 kWh",
        "333 kWh",
        "- 2. Read the meter of flat 2: StepTimeoutError: no answer within 0.2 s\n",
        "- 4. Read the meter of flat 4: not run, the limit max_steps was reached\n",
        "partial, limit reached: max_steps\n",
    ],
    "long_conversation.py": [
        "turn 6: a summary of 8 messages \nturn 7: 5 messages, 8 in the summary\n",
        "turn 12: a summary of 20 messages \n",
        "user: calculate 1 * 1\nassistant: 1 * 1 = 1\n",
    ],
    "knowledge.py": [
        "after the parcel has arrived. [[returns-policy.md:17]]\n",
        "**Sources:**\n\n- returns-policy.md:17 (How fast)\n",
        "step 2 was given warehouse.md:5-6\n",
    ],
    "own_prompts.py": [
        "A valley that the sea has taken.\n",
        "think: You work for a museum. Visitors are ten years old. Plan as few steps as will do.",
        "specialist: You are a guide. One sentence, no foreign words.",
        "feedback: You work for a museum. Visitors are ten years old. Be content with an answer",
    ],
    "plan_document.py": [
        "<!-- agreed with the caretaker on Friday -->",
        "- [x] 2. Count the boxes @surveyor\n\n  > 40 boxes\n",
        "  > Two days, for 12 shelves and 40 boxes.\n\n## Who to call\n\nMs Berg, 555 0117.\n",
        "line 10, column 51: Step 3 waits for step 7, which this plan does not have.",
    ],
    "retry_and_route_around.py": [
        "1 completed retries: 1 \n2 failed retries: 0 no such list\n3 completed",
        "1 EUR = 1.08 USD; 1 NOK = 0.09 USD\ncompleted\n",
    ],
    "run_sync_script.py": [
        "**Total revenue by region** (sales.csv, 600 rows)",
        "| North | 60616.9 |",
    ],
    "stateless_script.py": [
        "process 1: approval: The request has 2 parts for the team.\n",
        "process 2: question: - 1/painter/1: Which colour? (Paint the hall)\n- 2/painter/1: ",
        "process 3: question: Which colour? (Paint the hall)\nprocess 4: done: ",
        "Paint the hall: done in blue\n",
        "paint the attic: done in grey\n",
        "process 5: approval: ",
        "process 7: done: ",
        "Paint the cellar: done in white\nprocess 8: done: 3 * 3 = 9\n",
        "process 10: done: 5 * 5 = 25\n",
    ],
    "streaming.py": [
        "2 steps\nstep 1 starts: Look up the price of the train\n",
        "step 1 ends: 45 EUR\nstep 2 ends: 30 EUR\n2 of 2 steps are done, by prices.\n",
    ],
    "team_file.py": [
        "['calendar', 'writer']\n",
        "From 2026-03-02 to 2026-04-10 there are **30** working days.\n",
        "line 2: specialists[0].use: the module 'replan_local' has no 'anlyst'",
    ],
    "mcp_tools.py": [
        "May the tool shop__order be called? {'article': 'pencils', 'amount': 470}\n",
        "There were 3 pencils, and 47 are ordered.",
        "The pencils are on their way.\n",
    ],
    "web_session.py": [
        "Paint the hall @painter: the connection is lost after event 3\n",
        "and is there again, up to the result: Colour?\n",
        "blue: the connection is lost after event 2\nand is there again, up to the result: ",
        "\n\nblue\n",
    ],
    "tools.py": [
        "the tool is asked for Ulm\nthe tool is asked for Bonn\n",
        "Take an umbrella: it rains in Bonn.\nmodel calls: 5\n",
    ],
}


def run_program(name: str) -> None:
    """Run a program as `python examples/NAME` does; it may end with the exit code 0."""
    try:
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise


def forked(words: list[str], *, input: str, text: bool, env: dict[str, str]) -> str:  # noqa: A002
    """What `subprocess.check_output` does, by a process that need not import anything."""
    with tempfile.TemporaryFile("w+") as told:
        told.write(input)
        told.seek(0)
        ended = warm.run(*words[1:], stdin=told.fileno(), env=env)
    assert (ended.returncode, text) == (0, True), ended.stderr
    return ended.stdout


@pytest.fixture(autouse=True)
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another folder, no arguments, and none of the settings that somebody may have made."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["example"])
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(subprocess, "check_output", forked)
    for name in ("REPLAN_MODEL", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_what_it_is_there_to_show(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    run_program(name)
    printed = capsys.readouterr().out
    place = 0
    for text in SHOWN[name]:
        assert text in printed[place:], printed
        place = printed.index(text, place)
    assert list(tmp_path.iterdir()) == [], "it leaves nothing behind"


def test_the_pipeline_of_the_article_finds_the_wrong_figure(capsys: pytest.CaptureFixture[str]):
    run_program("article")
    printed = capsys.readouterr().out
    assert "draft_writing: Customers may return anything within 40 days of delivery." in printed
    assert "  figure_check: wrong: 40 is 30\n" in printed
    assert "---\nCustomers may return anything within 30 days of delivery." in printed


@pytest.mark.parametrize("name", [*PROGRAMS, "article"])
def test_a_program_asks_the_model_that_is_named(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    with OpenAIServer(answered_by_a_model) as server:
        monkeypatch.setenv("REPLAN_MODEL", "openai:some-model")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        run_program(name)
    assert {request.model for request in server.requests} == {"some-model"}
    assert capsys.readouterr().out


def test_the_article_takes_the_model_and_its_server_as_options(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    with OpenAIServer(answered_by_a_model) as server:
        options = ["--model", "openai:some-model", "--base-url", server.base_url]
        monkeypatch.setattr(sys, "argv", ["article", *options])
        run_program("article")
    phases = [each.call.phase for each in server.requests if each.call and each.call.phase]
    assert phases[:2] == ["outline_writing", "draft_writing"]
    assert phases[-1] == "draft_correction"
    assert capsys.readouterr().out


def answered_by_a_model(request: ChatRequest) -> str:
    """Answer in few words whatever is asked, as some model may."""
    node = request.call.node if request.call else ""
    if node == "think":
        return "---\ncomplexity: simple\n---\nThat is as you like it."
    if node == "feedback":
        return "---\nverdict: complete\n---\nThat is done."
    return "Yes."


def test_a_program_is_short_and_says_what_it_shows_and_how_to_run_it():
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for name in PROGRAMS:
        text = (EXAMPLES / name).read_text(encoding="utf-8")
        told = ast.get_docstring(ast.parse(text)) or ""
        assert len(text.splitlines()) <= LONGEST, name
        assert f"python examples/{name}" in told
        assert "REPLAN_MODEL" in told, name
        assert ("ScriptedModel" in told) == ("ScriptedModel" in text), name
        assert f"| [`{name}`]({name}) |" in listed


def test_a_question_that_cannot_be_answered_is_told_by_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys, "argv", ["example", "total miles by region from sales.csv"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(EXAMPLES / "run_sync_script.py"), run_name="__main__")
    assert ended.value.code == 1
    assert "No column 'miles'" in capsys.readouterr().out
