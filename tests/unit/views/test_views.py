"""What is shown of a run, from whatever it did, and whatever was said in it."""

import json
import re

import pytest
from rich.cells import cell_len
from typer.testing import CliRunner

from made_runs import NOON, STEPS, attempt, event, whole
from replan.base.secrets.sources import learn_values
from replan.cli.main import app
from replan.errors import InputError
from replan.events import (
    AnswerReceived,
    ApprovalRequested,
    FeedbackGenerated,
    InputRequested,
    LimitReached,
    ModelCompleted,
    ModelInvoked,
    PlanCreated,
    PlanUpdated,
    ReplyParseFailed,
    RunCorrected,
    RunResumed,
    RunStarted,
    RunStopped,
    StepsInvalidated,
    StepsRouted,
    TaskCompleted,
    ToolCompleted,
    ToolInvoked,
)
from replan.log.rows import Request
from replan.plan.model import PlanStep, PlanUpdate, PlanUpdateType, TaskPlan
from replan.runs.travel.exported_run import exported, opened_export
from replan.state.results import SpecialistResult
from replan.views.drawn_plan import boxes, mermaid
from replan.views.run.attempts import attempts_lines, step_lines
from replan.views.run.markdown_report import markdown_report
from replan.views.run.overview import overview
from replan.views.run.timeline import timeline

HOSTILE = (
    "\x1b[2J\x1b]0;title\x07red\x9b31m [bold]bold[/bold] \u202eevil\u2066 \u00ad\u200b"
    " ```\n# head\n``` ~~~ "
    '"] --> x["a#quot; <script>alert(1)</script> <img src=x onerror=y> | cell |'
    " 比較比較 👩‍👩‍👧 \r\n"
    "%%{init: {}}%% click s1 href `tick` &lt; ![i](http://x) [l](javascript:x) " + "long" * 600
)
STEERING = re.compile(
    "[\u00ad\u200b\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


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
    fields = {
        "arguments": {HOSTILE: HOSTILE},
        "value": 1.0,
        "seconds": 1.0,
        "effects": "pure",
        "step_id": 1,
        "attempt": 1,
        "assignments": {1: HOSTILE},
        "version": 2,
        "steps": 3,
        "changes": {"added": [{"index": 0, "step": {"id": 4, "description": HOSTILE}}]},
        "call": "c",
        "prompt": [{"role": HOSTILE, "ref": "p", "length": 1}],
        "reply": {"role": HOSTILE, "ref": "p"},
        "round": 1,
        "reruns": [{"step": 1, "reason": "edited"}],
    }
    words = {
        "tool_completed": {"status": "failed", "approval": "approved"},
        "task_completed": {"outcome": "partial"},
        "answer_received": {"kind": "question", "action": "answered"},
        "run_stopped": {"reason": "failed"},
        "run_corrected": {"action": "retry"},
        "plan_updated": {"by": "person"},
        "input_requested": {"kind": "approval"},
    }
    kinds = (
        *(RunStarted, PlanCreated, PlanUpdated, ApprovalRequested, InputRequested),
        *(FeedbackGenerated, LimitReached, ModelInvoked, ModelCompleted, ToolInvoked),
        *(ToolCompleted, ReplyParseFailed, StepsInvalidated, StepsRouted, AnswerReceived),
        *(RunStopped, RunResumed, RunCorrected, TaskCompleted),
    )
    events = tuple(
        event(
            seq,
            seq,
            kind.model_fields["type"].default,
            **{
                **{name: HOSTILE for name, f in kind.model_fields.items() if f.annotation is str},
                **fields,
                **words.get(kind.model_fields["type"].default, {}),
            },
        )
        for seq, kind in enumerate(kinds, 1)
    )
    said = {HOSTILE: {"answer": HOSTILE, "fingerprint": HOSTILE, "is_keyed": True}}
    request = Request(run_id="r", name="a", kind="answer", at=NOON, by=HOSTILE, answers=said)
    return whole(
        title=HOSTILE,
        plan=plan,
        answer=HOSTILE,
        labels={HOSTILE: HOSTILE},
        warnings=(HOSTILE,),
        events=events,
        requests=(request,),
        texts={"p": HOSTILE},
        limit_reached=HOSTILE,
        outcome="failed",
        run_id=HOSTILE,
        ledger=tuple(
            each.entry.replace(error=HOSTILE, specialist=HOSTILE) for each in whole().attempts
        ),
        results=(SpecialistResult(specialist_name=HOSTILE, step_id=1, error=HOSTILE),),
    )


@pytest.mark.parametrize("width", [24, 60, 80, 160])
def test_hostile_text_in_every_field_steers_no_terminal_in_any_view(width):
    run = hostile_run()
    report, plan = run, run.plan
    kept = run.replace(events=(), origin=HOSTILE)
    views = {
        "steps": [line for of in (report, kept) for n in (1, 2, 3) for line in step_lines(of, n)],
        "overview": overview(report, width),
        "timeline": timeline(report, width),
        "attempts": attempts_lines(run, run.attempts, run.results),
        "prompts": attempts_lines(run, run.attempts, (), has_host=True, has_prompts=True),
        "boxes": boxes(plan, width),
        "mermaid": mermaid(plan).split("\n"),
        "report": markdown_report(report).split("\n"),
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
    lines = markdown_report(hostile_run()).split("\n")
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
    assert len(headings) == len(["title", "plan", "history", "warnings", "answer", *STEPS])
    unquoted = "\n".join(line for line in outside if not line.startswith(">"))
    assert not re.search(r"(?<!\\)<script|(?<!\\)!\[", unquoted)


def test_an_exported_run_is_the_same_run_when_it_is_opened(tmp_path):
    run, path = whole(), tmp_path / "run.json"
    path.write_text(exported(run, NOON))
    opened = opened_export(path)
    assert opened == run
    assert overview(opened, 80) == overview(run, 80)
    hostile = whole(title=HOSTILE, answer=HOSTILE, labels={"user": HOSTILE})
    path.write_text(exported(hostile, NOON))
    assert opened_export(path) == hostile


def test_an_export_of_a_result_that_is_not_whole_can_be_opened(tmp_path):
    done = event(1, 20, "specialist_completed", step_id=1, specialist="w", cut="reply_length")
    run = whole(events=(done,), ledger=())
    (path := tmp_path / "run.json").write_text(exported(run, NOON), "utf-8")
    assert opened_export(path).events == (done,)


def test_an_export_holds_no_secret(tmp_path):
    learn_values(["hunter2-hunter2"])
    run = whole(answer="hunter2-hunter2", texts={"p": "api_key=sk-abcdefghijklmnop1234567890"})
    text = exported(run, NOON)
    assert "hunter2" not in text
    assert "sk-abcdef" not in text


DEEP = "[" * 900 + "]" * 900


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
        (lambda text: text.replace('"version": 1', '"version": true', 1), r"`version` is True"),
        (lambda text: text.replace('"output": null', f'"output": {DEEP}', 1), "nested|recursion"),
        (lambda text: text.replace('"kind": "answer"', '"kind": 7', 1), r"run\.requests\[0\]"),
        (lambda text: text.replace('"requests"', '"reqests"', 1), r"run\.requests: Field required"),
        (lambda text: "[" * 100_000, r"nested too deeply"),
    ],
    ids=[
        *("cut", "empty", "text", "list", "foreign", "newer", "version", "true", "deep value"),
        *("value", "name", "deep"),
    ],
)
def test_a_damaged_export_is_refused_with_the_place_of_the_damage(tmp_path, change, told):
    path = tmp_path / "run.json"
    path.write_text(change(exported(whole(), NOON)))
    with pytest.raises(InputError, match=told):
        opened_export(path)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("seconds", float("nan"), r"run\.events\[0\]\.seconds: nan should be from 0"),
        ("input_tokens", -5, r"\.input_tokens: -5 should be from 0"),
        ("cost", "much", r"\.cost: Input should be a valid number"),
    ],
)
def test_an_export_with_a_number_that_cannot_be_is_refused(tmp_path, name, value, told):
    path = tmp_path / "run.json"
    text = exported(whole(events=(event(1, 1, "model_completed", **{name: 7}),)), NOON)
    path.write_text(re.sub(rf'"{name}": 7(\.0)?', f'"{name}": {json.dumps(value)}', text))
    with pytest.raises(InputError, match=told):
        opened_export(path)


@pytest.mark.parametrize("value", ["1", True, False, "1.0", "true", 1.5, None])
def test_what_is_no_number_in_an_export_is_not_read_as_one(tmp_path, value):
    export = json.loads(exported(whole(), NOON))
    place = next(n for n, each in enumerate(export["run"]["events"]) if "step_id" in each)
    export["run"]["events"][place]["step_id"] = value
    (path := tmp_path / "run.json").write_text(json.dumps(export))
    with pytest.raises(InputError, match=rf"run\.events\[{place}\].*\.step_id: "):
        opened_export(path)


@pytest.mark.parametrize("reply", ["Done.", 7, [], {"type": "ai", "content": "x", "tool_calls": 7}])
def test_an_export_with_a_reply_that_is_no_message_is_refused(tmp_path, reply):
    export = json.loads(exported(whole(), NOON))
    export["run"]["results"][0]["result"] = reply
    (path := tmp_path / "run.json").write_text(json.dumps(export))
    with pytest.raises(InputError, match="It is damaged"):
        opened_export(path)


def test_an_export_whose_events_are_no_events_of_ours_is_refused_by_every_view(tmp_path):
    run, path = whole(events=(event(1, 1, "tool_completed", approval="approved"),)), tmp_path / "x"
    path.write_text(exported(run, NOON))
    for view in ((), ("--timeline",), ("--attempts",), ("--markdown",)):
        done = CliRunner().invoke(app, ["show", str(path), *view])
        assert done.exit_code in (0, 2)
        assert "Traceback" not in done.output
        assert done.exit_code == 0 or "It is damaged. An event lacks a field" in done.stderr


def test_an_export_that_is_too_large_or_no_text_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "run.json"
    path.write_bytes(b'{"format": "\xff\xfe"}')
    with pytest.raises(InputError, match="Byte 12 is not UTF-8"):
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


@pytest.mark.parametrize("name", ["events", "requests"])
def test_an_export_from_which_rows_were_taken_is_refused(tmp_path, name):
    export = json.loads(exported(whole(), NOON))
    there = len(export["run"][name])
    del export["run"][name][-1]
    path = tmp_path / "run.json"
    path.write_text(json.dumps(export))
    told = f"run.{name}: there are {there - 1}, and {there} were written"
    with pytest.raises(InputError, match=told):
        opened_export(path)


@pytest.mark.parametrize(
    ("limit", "is_idle"),
    [("max_cost=0.05", True), ("max_seconds=3", False), ("max_rounds=1", False)],
)
def test_only_an_attempt_that_a_limit_on_calls_ended_is_said_to_have_waited_for_room(
    limit, is_idle
):
    error = f"LimitReachedError: The limit {limit} is reached."
    ledger = (attempt(3, 1, 20, 21, "cancelled", error),)
    text = "\n".join(overview(whole(ledger=ledger, events=()), 200))
    assert f"attempt 1: cut off: {error}" in text
    assert ("It waited 1.0 s for room" in text) == is_idle
