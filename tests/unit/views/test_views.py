"""What is shown of a run, from whatever it did, and whatever was said in it."""

import json
import re
from datetime import timedelta

import pytest
from langchain_core.messages import AIMessage
from rich.cells import cell_len
from typer.testing import CliRunner

from made_runs import NOON, STEPS, answered, at, attempt, call, event, whole
from replan.cli.main import app
from replan.errors import InputError
from replan.events.types import (
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
from replan.log.amounts import Spending
from replan.log.rows import Request
from replan.plan.model import PlanStep, PlanUpdate, PlanUpdateType, StepStatus, TaskPlan
from replan.runs.travel.exported_run import exported, opened_export
from replan.secrets.sources import learn_values
from replan.state.questions import Question
from replan.state.results import SpecialistResult
from replan.state.usage import TokenCount
from replan.views.cells import harmless
from replan.views.drawn_plan import boxes, mermaid
from replan.views.run.attempt_calls import attempts_lines, step_lines, step_record
from replan.views.run.history import history_lines, time_text, why_text
from replan.views.run.markdown_report import markdown_report
from replan.views.run.overview import money, overview, remark_texts, tool_counts, usage_text
from replan.views.run.prompts import NONE_KEPT, prompts_lines
from replan.views.run.run_record import run_record
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


def test_the_first_view_tells_how_a_run_ended_why_at_what_price_and_who_decided():
    text = "\n".join(overview(whole(), 100))
    assert "partial: 1 of 3 steps done, 1 pending, 1 failed, 1 tool call failed" in text
    assert "why: step 2 failed: no money" in text
    assert "judged: Nothing more can be done." in text
    assert "goal: Buy gold" in text
    assert "took 1:40 (killed, and not resumed for up to 35 s)" in text
    assert "used 3 model calls, 45 tokens, cost at least 0.75 (1 call without a price)" in text
    assert "label: user=eva" in text
    assert "attempt 1: failed: ConnectionError: reset" in text
    assert "attempt 1: cut off (it has no end on record)" in text
    assert "tools: price x1 (1 failed)" in text
    assert tool_counts(whole()) == ["price x1 (1 failed)"]
    assert "anna approved the plan" in text
    assert "resumed by otto, after its process had been killed" in text


def test_the_cost_of_a_step_is_that_of_its_calls_and_unknown_without_a_price():
    report = whole()
    assert [step.calls.cost for step in report.steps] == [0.25, None, 0]
    rows = [line for line in overview(report, 100) if re.match(r"  \[.\] +\d\.", line)]
    assert [row.split()[4:6] for row in rows] == [["s", "0.25"], ["s", "unknown"], ["-", "-"]]


@pytest.mark.parametrize(
    ("outcome", "told"), [("partial", "removed in version 2 by the host"), ("waiting", "")]
)
def test_a_step_that_a_revision_removed_is_gone_and_one_that_is_not_planned_yet_is_open(
    outcome, told
):
    updated = event(5, 30, "plan_updated", by="model", version=2, changes={"removed": [4]})
    events = (*whole().events[:3], *([updated] if told else []))
    ledger = (attempt(1, 1, 1, 10), attempt(4, 1, 10, 20, "failed", "busy"))
    run = whole(outcome=outcome, ledger=ledger, events=events)
    report, lines = run, overview(run, 100)
    counts = "1 of 3 steps done, 1 pending, 1 failed" if told else "1 of 4 steps done, 2 pending"
    assert f"{outcome}: {counts}" in "\n".join(lines)
    assert any(line.startswith(f"  {'[-]' if told else '[ ]'} 4.") for line in lines)
    assert any(line.strip() == told for line in lines if told) == bool(told)
    assert run_record(run)["steps"][-1]["status"] == ("removed" if told else "pending")
    assert ("(removed in version 2 by the host)" in markdown_report(report)) == bool(told)
    assert sum("[ ] 4." in line for line in timeline(report, 80)) == (not told)


def test_what_was_charged_in_full_is_no_exact_cost():
    cut_off = answered(1, 1, "b", 0.25, "StepTimeoutError: no answer within 1 s")
    cut_off |= {"input_tokens": None, "output_tokens": None}
    events = (
        event(1, 0, "model_completed", **answered(None, None, "a", 0.5)),
        event(2, 5, "model_completed", **cut_off),
    )
    charged = {"run": Spending(calls=2, tokens=4000, cost=0.75)}
    text = "\n".join(overview(whole(events=events, spent=charged), 200))
    assert (
        "used 2 model calls, at most 4,000 tokens, cost at most 0.75 (0.5 known, at most 0.25 for "
        "1 call with unknown tokens)"
    ) in text
    began = event(3, 6, "model_invoked", **call(1, 1, "c", model="m"))
    exact = whole(events=(events[0], began))
    assert money(exact.calls) == "at least 0.5"
    assert money(whole(events=(*events, began)).calls) == "about 0.75"
    assert money(whole(events=(began,)).calls) == "unknown"
    # What a call that never ended had reserved is charged, and told apart.
    charged = {"run": Spending(calls=2, tokens=900, cost=0.8)}
    killed = whole(events=(events[0], began), spent=charged)
    assert usage_text(killed.calls) == (
        "1 model call and 1 that never ended, at most 900 tokens, cost at most 0.8 (0.5 known, at "
        "most 0.3 for 1 call that never ended)"
    )
    assert "1 model call and 1 not over yet," in usage_text(killed.calls, is_running=True)


def test_replies_that_could_not_be_used_are_known_by_what_followed_them():
    host, step = answered(None, None, "a"), answered(1, 1, "b")
    unread = {"problem": "Empty.", "fallback": "a simple request"}
    events = (
        event(1, 0, "model_invoked", **host),
        event(2, 1, "model_completed", **host),
        event(3, 2, "model_invoked", **step),
        event(4, 3, "model_completed", **step),
        event(5, 4, "model_invoked", **host, is_reprompt=True),
        event(6, 5, "model_completed", **host),
        event(7, 6, "model_invoked", **step),
        event(8, 7, "reply_parse_failed", node=host["node"], **unread),
    )
    assert whole(events=events).unusable == {2: "asked again", 6: "instead: a simple request"}
    assert remark_texts(whole(events=events).anomalies) == ["2 replies not usable"]


def test_a_limit_is_told_with_its_value_and_that_a_part_is_kept():
    hit = event(3, 9, "limit_reached", limit="max_cost", value=0.05, scope="run")
    run = whole(limit_reached="max_cost", events=(*whole().events[:2], hit))
    why = why_text(run)
    assert why == (
        "max_cost=0.05 was reached; a part of it is kept for the answer; step 2 failed: no money"
    )


def test_a_limit_is_told_with_the_figures_where_a_call_was_refused():
    why = "0.044 spent, 0.012 kept for the answer, and the next call may need 0.01"
    hit = event(3, 9, "limit_reached", limit="max_cost", value=0.05, scope="run", reason=why)
    run = whole(limit_reached="max_cost", events=(*whole().events[:2], hit))
    told = why_text(run)
    assert told == f"max_cost=0.05 was reached: {why}; step 2 failed: no money"


def test_an_attempt_that_waited_for_room_says_so():
    said = "LimitReachedError: The limit max_cost=0.05 is reached."
    run = whole(ledger=(attempt(3, 1, 10, 11, "cancelled", said),))
    text = "\n".join(overview(run, 200))
    assert f"cut off: {said} It waited 1.0 s for room, and made no call." in text


def test_the_history_tells_the_date_where_it_is_another_one_than_that_of_the_beginning():
    run = whole()
    day = 24 * 60 * 60
    later = (
        *run.events[:6],
        event(7, 30, "run_stopped", reason="waiting"),
        event(8, 3 * day, "run_resumed", by="otto"),
    )
    lines = history_lines(whole(events=later, last_seen_at=at(3 * day)))
    begun, went_on = NOON.astimezone(), at(3 * day).astimezone()
    assert f"{begun + timedelta(seconds=30):%H:%M:%S} now it waits for a person" in lines
    assert any(each.startswith(f"{went_on:%Y-%m-%d %H:%M:%S} resumed by otto") for each in lines)

    again = (attempt(1, 1, 1, 10, "failed"), attempt(1, 2, 2 * day, 2 * day + 1))
    run = whole(ledger=again)
    told = attempts_lines(run, run.attempts, ())
    assert told[0].startswith(f"{begun + timedelta(seconds=1):%H:%M:%S} step 1")
    assert any(
        each.startswith(f"{at(2 * day).astimezone():%Y-%m-%d %H:%M:%S} step 1") for each in told
    )

    waits = (*run.events[:6], event(7, 2 * day, "run_stopped", reason="waiting"))
    why = "\n".join(overview(whole(events=waits, outcome="waiting"), 100))
    assert f"since {at(2 * day).astimezone():%Y-%m-%d %H:%M:%S}" in why


def test_a_revision_is_told_with_the_old_and_the_new_words():
    made = [{"id": 1, "description": "Book a hostel"}, {"id": 2, "description": "Pay"}]
    added = {"index": 2, "step": {"id": 3, "description": "Go"}}
    edits = {"1": {"description": "Book a tent", "priority": 2}, "2": {"brief": "All of it."}}
    events = (
        event(1, 1, "plan_created", version=1, steps=2, title="", outline=made),
        event(
            2,
            2,
            "plan_updated",
            version=2,
            by="person",
            changes={"modified": edits, "added": [added]},
        ),
        event(
            3,
            3,
            "plan_updated",
            version=3,
            by="model",
            changes={"modified": {"1": {"description": "x" * 900}, "3": {"description": "Run"}}},
        ),
    )
    lines = "\n".join(history_lines(whole(events=events)))
    assert 'modified 1 (description: "Book a hostel" -> "Book a tent", priority: 2)' in lines
    assert '2 (brief: "All of it.")' in lines
    assert '3 (description: "Go" -> "Run")' in lines
    assert '1 (description: "Book a tent" -> "xxx' in lines
    assert "x" * 100 not in lines


def test_who_decided_about_a_call_is_told_with_what_came_of_it():
    who = {"step_id": 2, "specialist": "clerk", "node": "specialist_clerk", "attempt": 1}
    pay = {**who, "call": "c", "tool": "pay", "arguments": {"to": "b" * 90}, "seconds": 0.1}
    pay["effects"] = "pure"
    given = {"key": "2/clerk/1", "kind": "approval", "step_id": 2}
    refused = "Error: PermissionError: the IBAN is blocked"
    yes = {"approval": "approved", "status": "failed", "result": refused}
    changed = {"approval": "edited", "status": "success", "result": "paid"}
    no = {"approval": "rejected", "status": "rejected", "result": "Error: A person said no."}
    events = (
        event(1, 1, "answer_received", **given, action="approved", by="jonas"),
        event(2, 2, "tool_completed", **pay, **yes),
        event(3, 3, "answer_received", **given, action="edited", by="maria"),
        event(4, 4, "tool_completed", **pay, **changed),
        event(5, 5, "tool_completed", **pay, **no),
        event(6, 6, "tool_completed", **pay, approval=None, status="failed", result="Error: no"),
        event(7, 7, "feedback_generated", text="The plan goes on."),
    )
    report = whole(events=events, ledger=(), requests=())
    lines = [
        line.partition("step 2 clerk: ")[2] for line in history_lines(report, has_failures=True)
    ]
    shown = f'pay(to="{"b" * 58}…)'
    assert [line for line in lines if line] == [
        f"{shown} approved by jonas, failed: PermissionError: the IBAN is blocked",
        f"{shown} changed by maria, done",
        f"{shown} rejected by a person",
        f"{shown} failed: no",
    ]
    assert sum("pay(" in line for line in history_lines(report)) == 3
    assert not any("goes on" in line for line in history_lines(report))


def test_a_plan_says_who_handed_it_in_who_changed_it_and_which_steps_are_gone():
    outline = [{"id": 1, "description": "Hall"}, {"id": 2, "description": "Flowers"}]
    changes = {"removed": [2]}
    canned = {"update_type": PlanUpdateType.MODIFY_STEP, "timestamp": at(5), "changes": {}}
    reason = PlanUpdate(version=2, description="Changed by a person before it ran.", **canned)
    plan = TaskPlan(steps=STEPS[:1], version=2, update_history=(reason,))
    made = event(1, 1, "plan_created", version=1, steps=2, title="Party", outline=outline)
    events = (
        made,
        event(2, 3, "answer_received", key="plan", kind="plan", action="edited", by="petra"),
        event(3, 5, "plan_updated", version=2, by="person", changes=changes),
        event(4, 6, "task_completed", outcome="completed", warnings=[]),
    )
    run = whole(events=events, plan=plan, ledger=(), outcome="completed", requests=())
    report = run
    lines = [line.split(" ", 1)[1] for line in history_lines(report)]
    assert lines[0] == "the plan was handed in with the request (user=eva): 2 steps"
    assert "petra revised the plan, version 2" in lines
    gone = report.steps[-1]
    assert (gone.step.description, gone.removed) == ("Flowers", "removed in version 2 by petra")
    assert "completed: 1 of 1 step done" in overview(report, 100)
    thought = event(0, 0, "model_invoked", node="think", model="m")
    assert whole(events=(thought, made)).revisions[0].by == "the host"


def test_no_attempt_stands_before_the_word_that_somebody_goes_on():
    began = {"step_id": 2, "specialist": "worker", "attempt": 2, "task": "Pay"}
    resumed = event(7, 61, "run_resumed", by="otto")
    events = (*whole().events[:6], resumed, event(8, 62, "specialist_invoked", **began))
    report = whole(events=events)
    assert [(each.ended, each.by) for each in report.pauses] == [(at(60), "otto")]
    told = [
        line
        for line in history_lines(report, has_failures=True)
        if "resumed" in line or "step 2" in line
    ]
    assert [line.split(" ", 1)[1][:20] for line in told] == [
        "step 2 worker, attem",
        "resumed by otto, aft",
        "step 2 worker, attem",
    ]
    assert "attempt 1 began; cut off" in told[0]


def test_an_attempt_that_asked_does_not_wait_once_it_is_gone_on_with():
    ledger = (
        attempt(1, 1, 0, 1, "waiting"),
        attempt(1, 2, 2, 3),
        attempt(2, 1, 3, 4, "waiting"),
        attempt(3, 1, 5, None, "unknown_outcome"),
        attempt(4, 1, 5, None, "unknown_outcome"),
    )
    doubt = {"key": "3/worker/1", "kind": "unknown_outcome", "text": "?"}
    asked = event(1, 9, "input_requested", step_id=3, specialist="worker", **doubt)
    run = whole(outcome="waiting", ledger=ledger, events=(asked,))
    assert [each.outcome_text for each in run.attempts] == [
        "asked, then went on",
        "done",
        "waits for a person",
        "unknown outcome",
        "cut off",
    ]


def test_a_run_waits_since_its_first_open_question():
    asks = [Question(key=f"{n}/worker/1", kind="question", text="?", step_id=n) for n in (2, 3)]
    events = (
        *(
            event(n, 10 * n, "input_requested", key=each.key, step_id=n)
            for n, each in enumerate(asks, 2)
        ),
        event(4, 50, "run_stopped", reason="waiting"),
    )
    run = whole(outcome="waiting", pending_questions=tuple(asks), events=events)
    assert why_text(run) == f"2 answers needed, since {time_text(at(20), NOON)}"


def test_a_rejection_that_led_nowhere_is_told():
    asked = event(1, 1, "approval_requested", reason="", problem="The model has no other plan.")
    lines = "\n".join(history_lines(whole(events=(asked,))))
    assert "a person is asked to approve the plan: The model has no other plan." in lines


def test_a_result_that_is_not_whole_says_so():
    cut = SpecialistResult(specialist_name="worker", step_id=1, cut="reply_length")
    done = event(
        1,
        20,
        "specialist_completed",
        step_id=1,
        specialist="worker",
        attempt=2,
        status="success",
        error="",
        cut="reply_length",
    )
    run = whole(results=(cut,), events=(done,))
    told = "the reply was cut off at its length limit"
    assert f"result of worker: success, incomplete: {told}" in "\n".join(
        attempts_lines(run, (), (cut,))
    )
    assert f"incomplete: {told}" in "\n".join(overview(run, 100))


def test_a_failed_result_whose_text_is_its_error_is_printed_once():
    failed = {"specialist_name": "worker", "step_id": 1, "status": "failed", "error": "No ink."}
    same = SpecialistResult(**failed, result=AIMessage("No ink."))
    other = SpecialistResult(**failed, result=AIMessage("Half a page."))
    assert attempts_lines(whole(), (), (same,))[2:] == ["  No ink."]
    assert attempts_lines(whole(), (), (other,))[2:] == ["  No ink.", "  Half a page."]


def test_a_timeline_shows_attempts_pauses_and_the_time_in_which_nobody_worked():
    lines = timeline(whole(), 60)
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
        event(3, 30, "run_stopped", reason=why, by="", seconds=30),
        event(4, 60, "run_resumed", by="otto"),
        event(5, 100, "task_completed", outcome="partial", warnings=[]),
    )
    return whole(events=events)


def test_the_time_in_which_a_person_was_waited_for_is_told_apart():
    lines, bar = overview(stopped("waiting"), 100), timeline(stopped("waiting"), 80)[1]
    assert any("took 1:40 (30 s at rest until a person answered)" in line for line in lines)
    assert any("resumed by otto (it waited for a person for 30 s)" in line for line in lines)
    assert re.search(r"\|=+\?+=+$", bar)
    lines, bar = overview(stopped("interrupted"), 100), timeline(stopped("interrupted"), 80)[1]
    assert any("took 1:40 (30 s with nobody at work)" in line for line in lines)
    assert re.search(r"\|=+:+=+$", bar)


def test_the_ticks_of_a_short_run_are_in_milliseconds():
    events = (event(1, 0, "run_started"), event(2, 0.4, "task_completed", outcome="answered"))
    run = whole(events=events, last_seen_at=at(0.4), ledger=(), plan=None)
    assert re.search(r"\|0 ms +\d+ ms", timeline(run, 80)[0])


def test_a_specialist_that_waits_hides_not_what_another_one_does_at_the_same_step():
    ledger = (
        attempt(1, 1, 10, 20, "waiting", who="asker"),
        attempt(1, 1, 30, 60, who="worker"),
        attempt(1, 2, 80, 90, who="asker"),
    )
    lines = timeline(whole(ledger=ledger, events=whole().events[:2]), 100)
    assert re.search(r"\|\.+\?+=+\?+=+$", next(line for line in lines if "1. Fetch" in line))


def test_a_step_that_a_revision_added_did_not_wait_before_it_was_planned():
    added = {"added": [{"step": {"id": 3, "description": "Tell"}}]}
    events = (
        *whole().events[:2],
        event(3, 50, "plan_updated", changes=added, version=2, by="model"),
    )
    bars = {line[4:5]: line.split("|")[1] for line in timeline(whole(events=events), 80)[3:6]}
    assert re.fullmatch(r" {10,}\.+", bars["3"])
    assert re.match(r" ?[.=x]", bars["1"])


@pytest.mark.parametrize("width", [20, 24, 40, 60, 80, 160])
def test_a_timeline_is_never_wider_than_the_window(width):
    assert max(map(cell_len, timeline(whole(), width))) <= width


def test_who_said_yes_to_a_tool_is_told_in_words_and_an_answer_as_it_was_given():
    asked = {"step_id": 1, "specialist": "worker", "text": "May it?"}
    questions = {
        "1/worker/1": Question(key="1/worker/1", kind="approval", **asked),
        "1/worker/2": Question(key="1/worker/2", **asked),
    }
    given = {"1/worker/1": {"action": "reject", "reason": "too much"}, "1/worker/2": "reject"}
    rows = {
        key: {"answer": each, "fingerprint": "f", "is_keyed": True} for key, each in given.items()
    }
    request = Request(run_id="r", name="a", kind="answer", at=at(50), by="anna", answers=rows)
    text = "\n".join(overview(whole(questions=questions, requests=(request,)), 100))
    assert "anna rejected 1/worker/1: too much" in text
    assert "anna answered 1/worker/2: reject" in text


def test_what_a_person_was_shown_and_changed_is_told_where_the_plan_is_another_one_now():
    call = {"tool": "send", "arguments": {"to": "ann"}}
    who = {"step_id": 2, "specialist": "worker"}
    asks = {"key": "2/worker/1", "kind": "approval", "text": "May it?"}
    foreign = "4d97934b3cae0cb1"
    outline = [{"id": 1, "description": "Fetch", "assigned_to": "a", "joined_by": ["b"]}]
    outline += [{"id": 2, "description": "Pay", "dependencies": [1]}]
    changes = {"removed": [1], "modified": {"2": {"description": "Wait"}}}
    events = (
        event(1, 1, "plan_created", version=1, steps=2, outline=outline),
        event(2, 2, "approval_requested", reason="It is new."),
        event(3, 3, "plan_updated", version=2, by="model", changes=changes),
        event(4, 4, "approval_requested", reason="It is revised."),
        event(5, 5, "input_requested", **asks, **who, **call),
        event(6, 6, "input_requested", key="2/worker/2", text="Old one?", tool="", **who),
        event(7, 7, "input_requested", key=foreign, text="Which?", tool="", **who),
        event(8, 9, "answer_received", key=foreign, kind="question", action="answered", **who),
    )
    old = Question(key="2/worker/2", text="Old one?", kind="approval", details=call, **who)
    edit = {"action": "edit", "arguments": {"to": "bob"}}
    rows = {"2/worker/2": {"answer": edit, "fingerprint": "f"}, foreign[:8]: "red"}
    request = Request(run_id="r", name="a", kind="answer", at=at(8), by="anna", answers=rows)
    report = whole(events=events, questions={old.key: old}, requests=(request,))
    lines = [line.split(" ", 1)[1] for line in history_lines(report)]
    shown = "the plan that was shown: 1 Fetch @a @b; 2 Pay (after 1)"
    assert lines[1:3] == ["a person is asked to approve the plan: It is new.", shown]
    assert sum(line.startswith("the plan that was shown") for line in lines) == 1
    assert 'step 2 worker asked (2/worker/1): May it? send(to="ann")' in lines
    assert "step 2 worker asked (2/worker/2): Old one?" in lines
    assert 'anna changed 2/worker/2: {"to": "bob"}' in lines
    assert [line for line in lines if "4d97934b" in line] == [
        "step 2 worker asked (4d97934b): Which?",
        "anna answered 4d97934b: red",
    ]
    of_step = [line.split(" ", 1)[1] for line in history_lines(report, 2)]
    assert of_step == [line for line in lines if "2/worker" in line or "4d97934b" in line]
    assert history_lines(report, 1) == []


def test_a_step_says_for_whom_and_how_long_it_waited():
    done = {"assigned_to": "worker", "status": StepStatus.COMPLETED}
    steps = (
        PlanStep(id=1, description="Fetch", **done),
        PlanStep(id=2, description="Pay", dependencies=(1,), **done),
        PlanStep(id=3, description="Ask", assigned_to="worker", dependencies=(1,)),
        PlanStep(id=4, description="Tell", assigned_to="worker", dependencies=(1, 3)),
        PlanStep(id=5, description="Kept", result="It is kept.", **done),
        PlanStep(id=6, description="Left", status=StepStatus.SKIPPED, feedback="Skipped by eva."),
        PlanStep(id=7, description="Break", assigned_to="worker", status=StepStatus.FAILED),
        PlanStep(id=8, description="Mend", assigned_to="worker", dependencies=(7,)),
    )
    ledger = (
        attempt(1, 1, 0, 10),
        attempt(2, 1, 15, 16, "waiting"),
        attempt(2, 2, 46, 47, "failed", "reset"),
        attempt(2, 3, 49, 50),
        attempt(3, 1, 10, 11, "waiting"),
        attempt(7, 1, 0, 1, "failed", "no"),
    )
    events = (
        event(1, 0, "plan_created", version=1, steps=8),
        event(2, 20, "run_stopped", reason="waiting"),
        event(3, 46, "run_resumed", by="eva"),
        event(4, 50, "run_stopped", reason="waiting"),
    )
    run = whole(
        plan=TaskPlan(steps=steps),
        ledger=ledger,
        events=events,
        requests=(),
        outcome="waiting",
        last_seen_at=at(50),
        origin="0123456789",
    )
    report = run
    told = {number: "\n".join(step_lines(report, number)) for number in range(1, 9)}
    assert "waited" not in told[1]
    wait = (
        "waited 10 s for step 1, 5.0 s for its turn, 30 s for a person (from question to next "
        "attempt), 2.0 s between its attempts"
    )
    assert wait in told[2].splitlines()
    assert "waiting, 1 attempt, took 1.0 s, cost -\nwaited 10 s for step 1\n" in told[3]
    since = re.escape(time_text(at(11), NOON))
    assert re.search(rf"\nwaits for a person since {since}$", told[3], re.MULTILINE)
    assert re.search(r"\nwaits for step 3 since .*\nIt was not attempted yet\.", told[4])
    assert "in run 01234567: replan show 01234567 --step 5\n  It is kept." in told[5]
    assert told[6].splitlines()[1:3] == ["skipped", "Skipped by eva."]
    assert re.search(r"\nwaits for step 7 \(failed\) since .*\nIt was not attempted", told[8])
    head = overview(report, 100)
    assert head[1] == "waiting: 3 of 8 steps done, 1 waiting, 2 pending, 1 failed, 1 skipped"
    assert any(line.startswith("  [?] 3.") for line in head)
    record = step_record(report, 3)
    assert record["status"] == "waiting"
    assert [each["what"] for each in record["waits"]] == ["for step 1", "for a person"]


def test_what_of_the_knowledge_somebody_was_given_is_told():
    of_step = {"node": "specialist", "step_id": 1, "specialist": "worker", "error": ""}
    found = [{"source": "prices.md", "line": 3}, {"source": "prices.md", "line": 9}]
    events = (
        event(1, 1, "knowledge_retrieved", **of_step, sources=found),
        event(2, 2, "knowledge_retrieved", node="think", sources=[], error="no such folder"),
    )
    text = "\n".join(overview(whole(events=events), 100))
    assert "step 1 worker is given knowledge: prices.md:3, prices.md:9\n" in text
    assert "host is given no knowledge: no such folder" in text


def test_the_attempts_of_several_specialists_at_a_step_are_told_apart():
    ledger = (attempt(1, 1, 1, 2, "failed", "no"), attempt(1, 1, 1, 2, "failed", "no", "other"))
    lines = overview(whole(ledger=ledger), 100)
    notes = [line.strip() for line in lines if "attempt 1" in line]
    assert notes == ["worker, attempt 1: failed: no", "other, attempt 1: failed: no"]


def test_a_run_that_stands_still_says_since_when_and_why():
    events = (
        *whole().events[:6],
        event(7, 30, "run_stopped", reason="interrupted", by="otto", seconds=30),
    )
    stopped = overview(whole(outcome="interrupted", events=events), 100)
    assert any(re.fullmatch(r"why: it was stopped at .* by otto", line) for line in stopped)
    killed = overview(whole(outcome="interrupted", events=events[:-1]), 100)
    assert any("its process was killed" in line for line in killed)
    ask = Question(key="1", kind="question", text="?")
    old = whole(outcome="waiting", events=events[:-1], pending_questions=(ask,))
    assert why_text(old).startswith("1 answer needed; when its process ended is ")


def test_a_rejected_run_says_who_rejected_it_and_why():
    said = {"key": "plan", "kind": "plan", "action": "rejected"}
    events = (event(1, 1, "answer_received", **said, by="anna", text="too dear"),)
    told = why_text(whole(outcome="rejected", events=events))
    assert told == "anna rejected the plan: too dear"
    assert why_text(whole(outcome="rejected", events=())) == "a person rejected the plan"


def test_what_a_model_was_told_is_shown_or_that_nothing_is_kept():
    told = {"prompt": [{"role": "human", "length": 4, "ref": "p"}], "model": "m"}
    events = (event(1, 0, "model_invoked", **call(1, 1, "a", **told)),)
    events += (
        event(2, 1, "model_completed", **answered(1, 1, "a"), reply={"role": "ai", "ref": "x"}),
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
        "changes": {"added": [{"step": {"id": 4, "description": HOSTILE}}]},
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
        ledger=tuple(each.replace(error=HOSTILE, specialist=HOSTILE) for each in whole().ledger),
        results=(SpecialistResult(specialist_name=HOSTILE, step_id=1, error=HOSTILE),),
    )


@pytest.mark.parametrize("width", [24, 60, 80, 160])
def test_hostile_text_in_every_field_steers_no_terminal_in_any_view(width):
    run = hostile_run()
    report, plan = run, run.plan
    kept = run.replace(ledger=(), origin=HOSTILE)
    views = {
        "steps": [line for of in (report, kept) for n in (1, 2, 3) for line in step_lines(of, n)],
        "overview": overview(report, width),
        "timeline": timeline(report, width),
        "attempts": attempts_lines(run, run.attempts, run.results),
        "prompts": prompts_lines(run, run.events),
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
    assert len(headings) == len(["title", "plan", "history", "answer", *STEPS])
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
    (path := tmp_path / "run.json").write_text(exported(whole(events=(done,)), NOON), "utf-8")
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
        (lambda text: text.replace('"outcome": "failed"', '"outcome": 7', 1), r"run\.ledger\[0\]"),
        (lambda text: text.replace('"ledger"', '"ledgre"', 1), r"run\.ledger: Field required"),
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
    export["run"]["ledger"][0]["step_id"] = value
    (path := tmp_path / "run.json").write_text(json.dumps(export))
    with pytest.raises(InputError, match=r"run\.ledger\[0\]\.step_id: "):
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


def test_json_of_a_run_has_each_step_with_its_time_and_cost():
    record = json.loads(json.dumps(run_record(whole()), default=str))
    assert [each["usage"]["cost"] for each in record["steps"]] == [0.25, None, 0]
    assert [each["attempts"] for each in record["steps"]] == [2, 2, 0]
    assert record["unknown_seconds"] == 35
    assert record["idle_seconds"] == record["waiting_seconds"] == 0
    assert harmless(record["answer"]) == "It did not work."


def test_what_a_result_took_counts_all_attempts_at_it():
    events = (
        event(1, 5, "model_completed", **answered(1, 1, "a", 0.25)),
        event(2, 15, "model_completed", **answered(1, 2, "b", 0.25)),
    )
    usage = TokenCount(calls=1, input_tokens=10, output_tokens=5)
    run = whole(
        events=events,
        results=(SpecialistResult(specialist_name="worker", step_id=1, usage=usage),),
    )
    lines = attempts_lines(run, run.attempts_of(1), run.results)
    assert any("2 model calls, 30 tokens in 2 attempts" in line for line in lines), lines


def test_a_call_without_an_end_is_under_way_only_while_its_attempt_is():
    begun = event(
        1, 21, "tool_invoked", **call(2, 1, "c1", tool="pay", arguments={"n": 1}, effects="pure")
    )
    run = whole(events=(begun,))
    lines = "\n".join(attempts_lines(run, run.attempts_of(2), ()))
    assert "tool pay(n=1): cut off" in lines
    assert "pay x1 (1 cut off)" in "\n".join(overview(run, 100))


def test_what_was_charged_for_a_call_that_broke_off_is_told():
    events = (event(1, 1, "model_completed", **answered(1, 1, "a", 0.0633, "StepTimeoutError")),)
    run = whole(events=events)
    text = "\n".join(attempts_lines(run, run.attempts_of(1), ()))
    assert "StepTimeoutError, charged 0.0633 in full: its cost is unknown" in text


def test_a_call_that_was_cut_off_is_not_said_to_go_on_and_who_settled_it_is_told():
    invoked = call(2, 1, "t", tool="pay", arguments={}, effects="pure")
    of = {"step_id": 2, "specialist": "worker", "key": "2/worker/1"}
    told = {"by": "anna", "action": "answered", "text": "done: receipt 7"}
    kind = {"kind": "unknown_outcome"}
    told = event(2, 30, "answer_received", **of, **told, **kind)
    events = (event(1, 21, "tool_invoked", **invoked), told)
    run = whole(events=events)
    lines = attempts_lines(run, run.attempts_of(2), ())
    assert [line for line in lines if "pay" in line] == ["  tool pay(): cut off"]
    assert [line.split(maxsplit=1)[1] for line in lines if "anna" in line] == [
        "anna said what became of it: done: receipt 7"
    ]
    assert "tools: pay x1 (1 cut off)" in "\n".join(overview(run, 200))
    ledger = (attempt(2, 1, 20, None, "unknown_outcome"),)
    goes_on = whole(events=events[:1], outcome="running", ledger=ledger)
    assert "tools: pay x1 (1 not over)" in "\n".join(overview(goes_on, 200))


@pytest.mark.parametrize("name", ["events", "ledger"])
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


def test_a_run_that_is_not_complete_names_the_steps_that_were_not_run():
    steps = (STEPS[0], STEPS[2], STEPS[2].replace(id=4, status=StepStatus.SKIPPED))
    text = "\n".join(overview(whole(plan=TaskPlan(steps=steps)), 100))
    assert "why: steps 3, 4 were not run\n" in text
    assert "judged: Nothing more can be done." in text
    done = whole(plan=TaskPlan(steps=steps), outcome="completed")
    assert "why: Nothing more can be done.\n" in "\n".join(overview(done, 100))
