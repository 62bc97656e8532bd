"""What is shown of a run, from whatever it did, and whatever was said in it."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from rich.cells import cell_len
from typer.testing import CliRunner

from replan.cli.main import app
from replan.cli.views.attempts import attempts_lines
from replan.cli.views.cells import harmless
from replan.cli.views.drawn_plan import boxes, mermaid
from replan.cli.views.overview import overview
from replan.cli.views.prompts import NONE_KEPT, prompts_lines
from replan.cli.views.report import report
from replan.cli.views.run_record import run_record
from replan.cli.views.timeline import timeline
from replan.errors import InputError
from replan.plan.model import PlanStep, PlanUpdate, PlanUpdateType, StepStatus, TaskPlan
from replan.ports.journal import LedgerEntry
from replan.ports.run_book import Request
from replan.runs.attempts import attempts_of
from replan.runs.event_log import RunEvent
from replan.runs.export import exported, opened_export
from replan.runs.story import story_of
from replan.runs.whole_run import WholeRun
from replan.secrets.sources import learn_values
from replan.state.results import SpecialistResult
from replan.state.usage import TokenCount, Usage

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOSTILE = (
    "\x1b[2J\x1b]0;title\x07red\x9b31m [bold]bold[/bold] \u202eevil\u2066 ```\n# head\n``` ~~~ "
    '"] --> x["a#quot; <script>alert(1)</script> <img src=x onerror=y> | cell |'
    " 比較比較 👩‍👩‍👧 \r\n"
    "%%{init: {}}%% click s1 href `tick` &lt; ![i](http://x) [l](javascript:x) " + "long" * 600
)
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def at(seconds):
    return NOON + timedelta(seconds=seconds)


def event(seq, moment, kind, **details):
    return RunEvent(run_id="r", seq=seq, at=at(moment), type=kind, round=1, details=details)


def attempt(step, number, began, ended, outcome="done", error="", who="worker"):
    return LedgerEntry(
        run_id="r",
        step_id=step,
        specialist=who,
        number=number,
        key="k",
        started_at=at(began),
        ended_at=None if ended is None else at(ended),
        outcome=outcome,
        error=error,
    )


def call(step, number, name, cost=None, **said):
    where = {"node": "specialist_worker", "step_id": step, "specialist": "worker"}
    return {**where, "attempt": number, "call": name, "cost": cost, **said}


def answered(step, number, name, cost=None, error=""):
    tokens = {"input_tokens": 10, "output_tokens": 5, "seconds": 0.5, "error": error}
    return call(step, number, name, cost, model="m", **tokens)


STEPS = (
    PlanStep(id=1, description="Fetch", assigned_to="worker", status=StepStatus.COMPLETED),
    PlanStep(
        id=2,
        description="Pay",
        assigned_to="worker",
        dependencies=(1,),
        status=StepStatus.FAILED,
        feedback="no money",
    ),
    PlanStep(id=3, description="Tell", assigned_to="worker", dependencies=(2,)),
)


def whole(**changes):
    """A run that was killed, went on, asked, and failed."""
    fields = {
        "run_id": "r",
        "title": "Buy",
        "outcome": "partial",
        "started_at": NOON,
        "updated_at": at(100),
        "labels": {"user": "eva"},
        "plan": TaskPlan(title="Buy", steps=STEPS, version=2),
        "answer": "It did not work.",
        "output": None,
        "limit_reached": "",
        "warnings": (),
        "usage": Usage(),
        "spent": {},
        "waiting": (),
        "questions": {},
        "results": (SpecialistResult(specialist_name="worker", step_id=1, error="x" * 900),),
        "ledger": (
            attempt(1, 1, 1, 10, "failed", "ConnectionError: reset"),
            attempt(1, 2, 12, 20),
            attempt(2, 1, 20, None, "in doubt"),
            attempt(2, 2, 60, 80, "failed", "no money"),
        ),
        "requests": (
            Request(
                run_id="r",
                name="a",
                kind="answer",
                at=at(50),
                by="anna",
                answers={"plan": {"answer": "approve", "bound": "approve", "is_keyed": False}},
            ),
        ),
        "events": (
            event(1, 0, "run_started", request="Buy gold"),
            event(2, 1, "plan_created", version=1, steps=3),
            event(
                3,
                10,
                "model_answered",
                **answered(None, None, "h", 0.5),
            ),
            event(4, 15, "model_answered", **answered(1, 2, "a", 0.25)),
            event(
                5,
                19,
                "tool_completed",
                **call(1, 2, "t", tool="price", arguments={"of": "gold"}, approval=None),
                status="failed",
                result="Error: no quote",
                seconds=0.5,
            ),
            event(6, 25, "model_answered", **answered(2, 1, "b")),
            event(7, 60, "run_resumed", by="otto"),
            event(8, 90, "feedback_generated", feedback="Nothing more can be done."),
            event(9, 100, "task_completed", outcome="partial", warnings=[]),
        ),
        "texts": {},
    }
    return WholeRun(**{**fields, **changes})


def test_the_first_view_tells_how_a_run_ended_why_at_what_price_and_who_decided():
    text = "\n".join(overview(story_of(whole()), 100))
    assert "partial: 1 of 3 steps done, 1 pending, 1 failed" in text
    assert "why: Nothing more can be done." in text
    assert "goal: Buy gold" in text
    assert "took 1:40 (at work or not (killed) 35 s)" in text
    assert "used 3 model calls, 45 tokens, cost >=0.75" in text
    assert "label: user=eva" in text
    assert "attempt 1: failed: ConnectionError: reset" in text
    assert "attempt 1: in doubt (it has no end on record)" in text
    assert "tools: price x1 (1 failed)" in text
    assert "anna approved the plan" in text
    assert "gone on with by otto, after its process had ended without a word" in text


def test_the_cost_of_a_step_is_that_of_its_calls_and_unknown_without_a_price():
    story = story_of(whole())
    assert [step.calls.cost for step in story.steps] == [0.25, None, 0]
    rows = [line for line in overview(story, 100) if re.match(r"  \[.\] +\d\.", line)]
    assert [row.split()[4:6] for row in rows] == [["s", "0.25"], ["s", "unknown"], ["-", "-"]]


def test_a_timeline_shows_attempts_pauses_and_the_time_in_which_nobody_worked():
    lines = timeline(story_of(whole()), 60)
    assert all(cell_len(line) <= 60 for line in lines)
    bars = {line.split("|")[0].split("  ")[0].strip(): line.split("|")[1] for line in lines[1:6]}
    first, second, third = (bar for name, bar in bars.items() if name.startswith("["))
    assert re.fullmatch(r"x+\.*=+", first.strip())
    assert re.fullmatch(r"\.+/+x+", second.strip())
    assert re.fullmatch(r"\.+/+\.+", third.strip())
    assert re.fullmatch(r"=+/+=+", bars["all"])


def stopped(why):
    """A run that stood still for 30 s."""
    events = (
        event(1, 0, "run_started", request="Buy"),
        event(2, 1, "plan_created", version=1, steps=3),
        event(3, 30, "run_stopped", why=why, by="", seconds=30),
        event(4, 60, "run_resumed", by="otto"),
        event(5, 100, "task_completed", outcome="partial", warnings=[]),
    )
    return story_of(whole(events=events))


def test_the_time_in_which_a_person_was_waited_for_is_told_apart():
    lines, bar = overview(stopped("waiting"), 100), timeline(stopped("waiting"), 80)[1]
    assert any("took 1:40 (waited for a person 30 s)" in line for line in lines)
    assert any("gone on with by otto (it waited for a person for 30 s)" in line for line in lines)
    assert re.search(r"\|=+\?+=+$", bar)
    lines, bar = overview(stopped("interrupted"), 100), timeline(stopped("interrupted"), 80)[1]
    assert any("took 1:40 (nobody at work 30 s)" in line for line in lines)
    assert re.search(r"\|=+:+=+$", bar)


def test_the_ticks_of_a_short_run_are_in_milliseconds():
    events = (event(1, 0, "run_started"), event(2, 0.4, "task_completed", outcome="answered"))
    run = whole(events=events, updated_at=at(0.4), ledger=(), plan=None)
    assert re.search(r"\|0 ms +\d+ ms", timeline(story_of(run), 80)[0])


@pytest.mark.parametrize("width", [20, 24, 40, 60, 80, 160])
def test_a_timeline_is_never_wider_than_the_window(width):
    assert max(map(cell_len, timeline(story_of(whole()), width))) <= width


def test_a_run_that_stands_still_says_since_when_and_why():
    events = (
        *whole().events[:6],
        event(7, 30, "run_stopped", why="interrupted", by="otto", seconds=30),
    )
    stopped = overview(story_of(whole(outcome="interrupted", events=events)), 100)
    assert any(re.fullmatch(r"why: it was stopped at .* by otto", line) for line in stopped)
    killed = overview(story_of(whole(outcome="interrupted", events=events[:-1])), 100)
    assert any("its process ended without a word" in line for line in killed)


def test_what_a_model_was_told_is_shown_or_that_nothing_is_kept():
    told = {"prompt": [{"role": "human", "length": 4, "ref": "p"}], "model": "m"}
    events = (event(1, 0, "model_called", **call(1, 1, "a", **told)),)
    events += (
        event(2, 1, "model_answered", **answered(1, 1, "a"), reply={"role": "ai", "ref": "x"}),
    )
    run = whole(events=events, texts={"p": "Buy gold"})
    text = "\n".join(prompts_lines(run, run.events))
    assert "step 1 worker, attempt 1, model m" in text
    assert "    Buy gold" in text
    assert "(not kept any more)" in text
    assert prompts_lines(whole(), whole().events) == [NONE_KEPT]


def hostile_run():
    """A run with a hostile text in every place for a text."""
    plan = TaskPlan(
        title=HOSTILE,
        steps=tuple(
            step.replace(description=HOSTILE, assigned_to=HOSTILE, feedback=HOSTILE)
            for step in STEPS
        ),
        update_history=(
            PlanUpdate(
                version=2,
                update_type=PlanUpdateType.ADD_STEP,
                description=HOSTILE,
                timestamp=NOON,
                changes={},
            ),
        ),
    )
    details = dict.fromkeys(
        (
            *("request", "feedback", "error", "by", "why", "reason", "question", "key", "node"),
            *("model", "tool", "result", "status", "complaint", "outcome", "limit", "scope"),
            *("specialist", "approval", "action"),
        ),
        HOSTILE,
    )
    details |= {"arguments": {HOSTILE: HOSTILE}, "value": 1.0, "seconds": 1.0, "cost": None}
    details |= {"step_id": 1, "attempt": 1, "reruns": [HOSTILE], "chosen": {HOSTILE: HOSTILE}}
    details |= {"input_tokens": 1, "output_tokens": 1, "version": 2, "steps": 3}
    details |= {"changes": {"added": [{"step": {"id": 4, "description": HOSTILE}}]}}
    details |= {"prompt": [{"role": HOSTILE, "ref": "p", "length": 1}]}
    details |= {"reply": {"role": HOSTILE, "ref": "p"}}
    kinds = (
        *("run_started", "plan_created", "plan_updated", "approval_requested", "input_requested"),
        *("feedback_generated", "limit_reached", "model_called", "model_answered"),
        *("tool_invoked", "tool_completed", "reply_unreadable", "steps_reopened", "steps_routed"),
        *("answer_given", "run_stopped", "run_resumed", "run_corrected", "task_completed"),
    )
    events = tuple(
        event(seq, seq, kind, **details, call=str(seq // 2)) for seq, kind in enumerate(kinds, 1)
    )
    said = {HOSTILE: {"answer": HOSTILE, "bound": HOSTILE, "is_keyed": True}}
    request = Request(run_id="r", name="a", kind="answer", at=NOON, by=HOSTILE, answers=said)
    return whole(
        title=HOSTILE,
        plan=plan,
        answer=HOSTILE,
        labels={"user": HOSTILE},
        warnings=(HOSTILE,),
        events=events,
        requests=(request,),
        texts={"p": HOSTILE},
        limit_reached=HOSTILE,
        ledger=tuple(each.replace(error=HOSTILE, specialist=HOSTILE) for each in whole().ledger),
        results=(SpecialistResult(specialist_name=HOSTILE, step_id=1, error=HOSTILE),),
    )


@pytest.mark.parametrize("width", [24, 60, 80, 160])
def test_hostile_text_in_every_field_steers_no_terminal_in_any_view(width):
    run = hostile_run()
    story, plan = story_of(run), run.plan
    views = {
        "overview": overview(story, width),
        "timeline": timeline(story, width),
        "attempts": attempts_lines(run, attempts_of(run), run.results),
        "prompts": prompts_lines(run, run.events),
        "boxes": boxes(plan, width),
        "mermaid": mermaid(plan).split("\n"),
        "report": report(story).split("\n"),
    }
    for name, lines in views.items():
        assert not [line for line in lines if STEERING.search(line)], name
        assert not [line for line in lines if "\n" in line], name
    for name in ("timeline", "boxes"):
        assert max(map(cell_len, views[name])) <= width, name


def test_hostile_titles_stay_inside_their_nodes_of_a_mermaid_flowchart():
    lines = mermaid(hostile_run().plan).split("\n")
    assert lines[0] == "flowchart TD"
    nodes = [line for line in lines if "[" in line]
    assert len(nodes) == len(STEPS)
    for line in nodes:
        label = re.fullmatch(r'    s\d+\["([^"]*)"\](:::\w+)?', line)
        assert label, line
        assert not re.search(r"[<>`\\]|#(?!\d+;)|&", label[1])
        assert cell_len(line) < 1_000
    drawn = [line for line in lines if line not in nodes]
    assert all(re.fullmatch(r"(    s\d+ --> s\d+|    classDef [\w:#,; -]+)", x) for x in drawn[1:])


def test_hostile_texts_break_nothing_of_a_markdown_report():
    lines = report(story_of(hostile_run())).split("\n")
    outside, fence = [], ""
    for line in lines:
        if fence:
            fence = "" if line == fence else fence
        elif found := re.match(r"(`{3,})text", line):
            fence = found[1]
        else:
            outside.append(line)
    assert not fence, "a fence stays open"
    headings = [line for line in outside if line.startswith("#")]
    assert len(headings) == len(["title", "plan", "history", "answer", *STEPS])
    unquoted = "\n".join(line for line in outside if not line.startswith(">"))
    assert not re.search(r"(?<!\\)<script|(?<!\\)!\[", unquoted)


def test_an_exported_run_is_the_same_run_when_it_is_opened(tmp_path):
    run, path = whole(), tmp_path / "run.json"
    path.write_text(exported(run, NOON))
    opened = opened_export(path)
    assert opened == run
    assert overview(story_of(opened), 80) == overview(story_of(run), 80)
    hostile = whole(title=HOSTILE, answer=HOSTILE, labels={"user": HOSTILE})
    path.write_text(exported(hostile, NOON))
    assert opened_export(path) == hostile


def test_an_export_holds_no_secret(tmp_path):
    learn_values(["hunter2-hunter2"])
    run = whole(answer="hunter2-hunter2", texts={"p": "api_key=sk-abcdefghijklmnop1234567890"})
    text = exported(run, NOON)
    assert "hunter2" not in text
    assert "sk-abcdef" not in text


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda text: text[: len(text) // 2], r"line \d+, column \d+.*cut off"),
        (lambda text: "", r"line 1, column 1"),
        (lambda text: "not JSON", r"line 1, column 1"),
        (lambda text: "[1, 2]", r"`format` is not 'replan run'"),
        (lambda text: '{"format": "other"}', r"`format` is not 'replan run'"),
        (lambda text: text.replace('"version": 1', '"version": 2', 1), r"version 2.*newer Replan"),
        (lambda text: text.replace('"version": 1', '"version": "x"', 1), r"`version` is 'x'"),
        (lambda text: text.replace('"outcome": "failed"', '"outcome": 7', 1), r"run\.ledger\[0\]"),
        (lambda text: text.replace('"ledger"', '"ledgre"', 1), r"run\.ledger: Field required"),
        (lambda text: "[" * 100_000, r"nested too deeply"),
    ],
    ids=["cut", "empty", "text", "list", "foreign", "newer", "version", "value", "name", "deep"],
)
def test_a_damaged_export_is_refused_with_the_place_of_the_damage(tmp_path, change, told):
    path = tmp_path / "run.json"
    path.write_text(change(exported(whole(), NOON)))
    with pytest.raises(InputError, match=told):
        opened_export(path)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("seconds", float("nan"), r"run\.events\[0\]\.details\.seconds: nan should be from 0"),
        ("input_tokens", -5, r"details\.input_tokens: -5 should be from 0"),
        ("cost", "much", r"details\.cost: 'much' should be a number"),
    ],
)
def test_an_export_with_a_number_that_cannot_be_is_refused(tmp_path, name, value, told):
    path = tmp_path / "run.json"
    text = exported(whole(events=(event(1, 1, "model_answered", **{name: 7}),)), NOON)
    path.write_text(text.replace(f'"{name}": 7', f'"{name}": {json.dumps(value)}'))
    with pytest.raises(InputError, match=told):
        opened_export(path)


def test_an_export_whose_events_are_no_events_of_ours_is_refused_by_every_view(tmp_path):
    run, path = whole(events=(event(1, 1, "tool_completed", approval="approved"),)), tmp_path / "x"
    path.write_text(exported(run, NOON))
    for view in ((), ("--timeline",), ("--attempts",), ("--markdown",)):
        done = CliRunner().invoke(app, ["show", str(path), *view])
        assert done.exit_code in (0, 2)
        assert "Traceback" not in done.output
        assert (
            done.exit_code == 0
            or "It is damaged. An event has no, or no right, field" in done.stderr
        )


def test_an_export_that_is_too_large_or_no_text_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "run.json"
    path.write_bytes(b'{"format": "\xff\xfe"}')
    with pytest.raises(InputError, match="Byte 12 is no UTF-8"):
        opened_export(path)
    with pytest.raises(InputError, match="No such file"):
        opened_export(tmp_path / "gone.json")
    with path.open("wb") as file:
        file.truncate(600_000_000)
    with pytest.raises(InputError, match="It has 600000000 bytes, and 500000000 are read at most"):
        opened_export(path)


def test_boxes_stand_below_what_they_wait_for():
    lines = boxes(TaskPlan(steps=STEPS), 80)
    text = "\n".join(lines)
    assert text.index("1. Fetch") < text.index("2. Pay") < text.index("3. Tell")
    assert "| after 2 " in text
    assert "[!] 2. Pay" in text
    assert [line for line in lines if line.startswith("level")] == ["level 1", "level 2", "level 3"]


def test_a_box_folds_what_its_step_says_and_cuts_the_rest():
    said = "Compare all orders of the last year with those of the year before it by region"
    lines = boxes(TaskPlan(steps=(PlanStep(id=1, description=said),)), 30)
    assert lines[2:5] == [
        "| [ ] 1. Compare all orders  |",
        "|     of the last year with  |",
        "|     those of the year bef… |",
    ]


def test_json_of_a_run_has_each_step_with_its_time_and_cost():
    record = json.loads(json.dumps(run_record(whole()), default=str))
    assert [each["calls"]["cost"] for each in record["steps"]] == [0.25, None, 0]
    assert [each["attempts"] for each in record["steps"]] == [2, 2, 0]
    assert record["unknown_seconds"] == 35
    assert record["idle_seconds"] == record["waited_seconds"] == 0
    assert harmless(record["answer"]) == "It did not work."


def test_what_a_result_took_counts_all_attempts_at_it():
    events = (
        event(1, 5, "model_answered", **answered(1, 1, "a", 0.25)),
        event(2, 15, "model_answered", **answered(1, 2, "b", 0.25)),
    )
    usage = TokenCount(calls=1, input_tokens=10, output_tokens=5)
    run = whole(
        events=events,
        results=(SpecialistResult(specialist_name="worker", step_id=1, usage=usage),),
    )
    lines = attempts_lines(run, attempts_of(run, 1), run.results)
    assert any("2 model calls, 30 tokens in 2 attempts" in line for line in lines), lines
