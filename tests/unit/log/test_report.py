"""The report of a run is the same however its events come: at once, one by one, or after a kill."""

import json
import re
import time
from functools import reduce
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from made_runs import answered, at as made_at, attempt, call, event, whole
from replan import Host, Specialist, Team, ask_user, open_runtime, open_storage
from replan.assembly.graphs import viewer
from replan.log.apply import apply
from replan.log.events.types import AttemptEnd, Event, SpecialistInvoked, StepEvent
from replan.log.kept_events import event_of
from replan.log.report import RunReport
from replan.log.rows import Fork, LoggedEvent, Request
from replan.plan.model import PlanStep, PlanUpdate, PlanUpdateType, TaskPlan
from replan.runs.reports import read_report
from replan.views.run.history import history_lines

KINDS = (
    ("plan_created", {"version": 1, "steps": 2, "outline": [{"id": 1, "description": "Fetch"}]}),
    ("plan_updated", {"version": 2, "changes": {"removed": [1]}, "by": "person"}),
    ("plan_updated", {"version": 1}),
    ("specialist_invoked", {"step_id": 1, "attempt": 1}),
    ("specialist_invoked", {"step_id": 2, "attempt": 1}),
    ("specialist_retried", {"step_id": 1, "error": "reset"}),
    ("attempt_ended", {"step_id": 1, "outcome": "waiting"}),
    ("attempt_ended", {"step_id": 2, "outcome": "cancelled", "error": "stopped"}),
    ("specialist_completed", {"step_id": 1, "status": "success", "cut": "reply_length"}),
    ("input_requested", {"step_id": 2, "key": "2/worker/1", "kind": "unknown_outcome"}),
    ("answer_received", {"key": "plan", "kind": "plan", "action": "rejected", "by": "eva"}),
    ("model_invoked", call(1, 1, "a", is_reprompt=True)),
    ("model_completed", answered(1, 1, "a", cost=0.5)),
    ("model_completed", answered(None, None, "h")),
    ("tool_invoked", call(1, 1, "t")),
    ("tool_completed", call(1, 1, "t", status="failed")),
    ("reply_parse_failed", {"node": "specialist_worker", "problem": "?", "fallback": "none"}),
    ("feedback_generated", {"text": "Go on."}),
    ("limit_reached", {"limit": "max_cost", "value": 1.0}),
    ("run_stopped", {"reason": "waiting"}),
    ("run_resumed", {"by": "otto"}),
    ("run_corrected", {"action": "retry", "step_id": 1, "by": "anna"}),
    ("run_steered", {"kind": "edit", "status": "taken", "request": "e", "by": "anna"}),
    ("memory_summary", {"covered": 3, "calls": 1, "cost": 0.25}),
    ("task_completed", {"outcome": "completed"}),
)
logs = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 90)), max_size=20).map(
    lambda drawn: tuple(
        event(seq, seq * 100 + late, kind, **fields)
        for seq, ((kind, fields), late) in enumerate(drawn, 1)
    )
)


def told(report):
    """All that a report tells."""
    fold = report.fold
    return {
        "steps": report.steps,
        "attempts": report.attempts,
        "pauses": report.pauses,
        "revisions": report.revisions,
        "calls": report.calls,
        "host": report.host_calls,
        "anomalies": report.anomalies,
        "unusable": dict(report.unusable),
        "times": (report.began, report.ended, report.waited, report.idle, report.unknown),
        "ends": (fold.judged, [*fold.limits], {**fold.cuts}, {**fold.asked_at}),
    }


def course(report):
    """What a run at work shows of its course."""
    steps = [(each.status_text, each.specialists, each.calls) for each in report.steps]
    tried = [(each.entry.number, each.outcome, each.entry.error) for each in report.attempts]
    asked = [(each.step_id, each.text) for each in report.pending_questions]
    ends = (report.outcome, report.answer, report.warnings, report.calls, report.usage)
    return steps, tried, asked, ends


def as_read(report, events):
    """A report as it is read from its rows, with the facts that its state has."""
    return report.model_copy(update={"events": tuple(events), "drafts": {}})


def check_every_cut(report):
    """Check that a report which goes on from any event on is that of all events."""
    last = reduce(apply, report.events, as_read(report, ()))
    one = as_read(report, ())
    for number, each in enumerate(report.events, 1):
        before, shown = one, told(one)
        one = apply(one, each)
        cut = as_read(one, report.events[:number])
        assert told(one) == told(cut)
        assert told(before) == shown
        # Whoever goes on after a kill reads what was kept, and takes the rest.
        continued = as_read(cut, map(read_again, cut.events))
        for later in report.events[number:]:
            continued = apply(continued, later)
        assert told(continued) == told(last)
    assert told(one) == told(last)
    return last


def read_again(event):
    """An event as the log gives it back."""
    entry = json.loads(event.written)
    return event_of(event.run_id, LoggedEvent(seq=event.seq, event=entry))


@settings(max_examples=40)
@given(logs)
def test_a_made_log_gives_the_same_report_at_once_and_one_by_one(events):
    check_every_cut(whole(events=events, ledger=()))


@settings(max_examples=40)
@given(logs, st.integers(0, 20))
def test_an_attempt_whose_end_no_event_tells_was_cut_off(events, kept):
    """A kill leaves the first rows of a log, whatever an attempt was doing."""
    report = whole(events=events[:kept], ledger=(), outcome="interrupted")
    began, ended = list[tuple[int, str, int]](), dict[tuple[int, str, int], str]()
    for each in report.events:
        at = (each.step_id, each.specialist, each.attempt) if isinstance(each, StepEvent) else None
        if isinstance(each, SpecialistInvoked) and at not in began:
            began.append(at)
        # What is final stays; what was cut off may be settled later.
        if isinstance(each, AttemptEnd) and at in began and ended.get(at) in (None, "cancelled"):
            ended[at] = each.outcome
    tried = [each.entry for each in report.attempts]
    assert [(each.step_id, each.specialist, each.number) for each in tried] == began
    assert [each.outcome for each in tried] == [ended.get(at, "unknown_outcome") for at in began]
    assert [each.ended_at is None for each in tried] == [at not in ended for at in began]
    cut = {each.outcome_text for each in report.attempts if each.entry.ended_at is None}
    assert cut <= {"cut off", "unknown outcome"}


@pytest.mark.parametrize(
    ("rest", "why"),
    [("run_stopped", "waiting"), ("run_stopped", "interrupted"), ("task_completed", "over")],
)
def test_what_came_too_late_for_a_run_at_rest_ends_no_pause(rest, why):
    report = whole(
        events=(
            event(1, 0, "run_started"),
            event(2, 1, rest, reason=why),
            event(3, 5, "run_steered", kind="message", status="refused", request="m", by="eva"),
            event(4, 9, "run_resumed", by="otto"),
        ),
        ledger=(),
    )
    (pause,) = report.pauses
    assert (pause.why, pause.began, pause.ended) == (why, made_at(1), made_at(9))


@pytest.mark.parametrize("rest", [(), (event(3, 2, "run_stopped", reason="interrupted"),)])
def test_what_a_call_of_the_graph_goes_on_with_ends_the_pause_before_it(rest):
    begun = (event(1, 0, "run_started"), event(2, 1, "specialist_invoked", attempt=1))
    later = attempt(1, 2, 7, 8)
    rows = {"ledger": (), "requests": (), "untold": (later,)}
    report = whole(events=(*begun, *rest), **rows, outcome="completed")
    (pause,) = report.pauses
    assert (pause.why, pause.ended) == ("interrupted" if rest else "killed", made_at(7))
    assert [each.entry for each in report.attempts][-1] == later
    lines = [line.partition(" ")[2] for line in history_lines(report)]
    assert lines[-2:] == [
        "step 1 worker, attempt 2, in a call of the graph: done",
        "over: completed, in a call of the graph",
    ]
    assert ("after its process had been killed" in " ".join(lines)) == (not rest)


def test_a_run_that_went_back_tells_each_branch_by_itself():
    """What one branch had in its plan, and why, is said of no other."""
    added = {"added": [{"index": 1, "step": {"id": 2, "description": "Sell"}}]}
    again = {"added": [{"index": 1, "step": {"id": 3, "description": "Lend"}}]}
    update = PlanUpdate(
        version=2,
        update_type=PlanUpdateType.ADD_STEP,
        description="More is needed.",
        timestamp=made_at(9),
        changes=again,
        by="model",
    )
    steps = (PlanStep(id=1, description="Buy"), PlanStep(id=3, description="Lend"))
    report = whole(
        events=(
            event(1, 0, "plan_created", version=1, outline=[{"id": 1, "description": "Buy"}]),
            event(2, 1, "plan_updated", version=2, changes=added, by="person"),
            event(3, 2, "specialist_invoked", step_id=2, attempt=1),
            event(4, 9, "plan_updated", version=2, changes=again, by="model"),
        ),
        ledger=(),
        requests=(),
        forks=(Fork(at=made_at(5), state_at=made_at(0), step_id=None, is_rollback=False),),
        plan=TaskPlan(title="Buy", steps=steps, version=2, update_history=(update,)),
        outcome="waiting",
    )
    assert [revision.why for revision in report.revisions] == ["", "", "More is needed."]
    left = report.by_id[2]
    assert (left.removed, left.is_early) == (
        "of a plan that the run had before it went back",
        False,
    )


def test_a_plan_that_was_handed_in_is_so_when_its_run_begins_again():
    begun = [
        ("run_started", {}),
        ("plan_created", {"version": 1, "outline": [{"id": 1, "description": "Buy"}]}),
    ]
    asked = ("model_invoked", call(None, None, "a"))
    kinds = [*begun, asked, ("run_resumed", {}), *begun]
    events = (event(seq, seq, kind, **fields) for seq, (kind, fields) in enumerate(kinds, 1))
    report = whole(events=tuple(events), ledger=(), labels={})
    assert [each.by for each in report.revisions] == ["handed in with the request"] * 2


def test_an_answer_that_came_again_was_waited_for_once():
    first, again = (
        Request(
            run_id="r", name=name, kind="answer", at=made_at(at), by="eva", answers={"1/a/1": "b"}
        )
        for name, at in (("a", 3), ("b", 7))
    )
    stopped = event(2, 1, "run_stopped", reason="waiting")
    report = whole(
        events=(event(1, 0, "run_started"), stopped, event(3, 9, "run_resumed", by="eva")),
        ledger=(),
        requests=(first, again),
    )
    assert (report.waited, report.idle) == (2.0, 6.0)


@pytest.mark.parametrize("answer", ["", "Blue."])
async def test_the_log_of_a_run_gives_the_same_report_at_once_and_one_by_one(tmp_path, answer):
    def fetch(context):
        if context.attempt == 1:
            raise ConnectionError("reset")
        return "fetched"

    specialists = [
        Specialist("worker", "Works.", run=fetch, effects="pure"),
        Specialist("asker", "Asks.", run=lambda _: ask_user("Which?"), effects="pure"),
    ]
    plan = "- [ ] 1. Fetch @worker (retries 1)\n- [ ] 2. Ask @asker (after 1)\n"
    live = list[Event]()
    async with open_storage(str(tmp_path / "runs.db")) as storage:
        team = Team(Host(model="offline"), specialists)
        async with open_runtime(team, storage=storage) as runtime:
            run = await runtime.start({"plan": plan}, run_id="r", on_event=live.append)
            waits = await run
            if answer:
                await (await runtime.answer("r", answer, by="eva", on_event=live.append))
        record = await storage.runs.get("r")
        report = await read_report(viewer(storage), storage, record, record.updated_at)
    assert waits.outcome == "waiting"
    assert [len(each.attempts) for each in report.steps] == [2, 2 if answer else 1]
    assert [each.why for each in report.pauses] == ["waiting"]
    assert report.pauses[0].by == ("eva" if answer else "")
    last = check_every_cut(report)
    # What the events told of its end is what its state has.
    assert told(last) == told(report)
    assert last.outcome == report.outcome
    # Whoever followed it, and read nothing, knows as much of its course.
    followed = reduce(apply, live, RunReport.begun("r", report.started_at))
    assert course(followed) == course(report)


def test_a_plan_is_told_in_the_order_that_it_has():
    steps = [{"id": number, "description": f"Step {number}"} for number in (1, 2, 3)]
    # The order does not name the second step, as after a revision of which a part was refused.
    log = (
        event(1, 0, "plan_created", version=1, outline=steps),
        event(2, 1, "plan_updated", version=2, changes={"reordered": [3, 1]}),
    )
    report = whole(events=log, ledger=())
    assert [step.id for step in report.revisions[-1].after.steps] == [3, 2, 1]


def test_long_logs_are_not_folded_again_for_each_event():
    def seconds_of(number):
        report, began = whole(events=()), time.process_time()
        for seq in range(1, number + 1):
            report = apply(report, event(seq, seq, "model_completed", **answered(1, 1, str(seq))))
            assert report.calls.calls == seq
        return time.process_time() - began

    seconds_of(100)
    few, many = seconds_of(500), seconds_of(4_000)
    # Eight times as many take about eight times as long, and not sixty-four times.
    assert many < 24 * few, (few, many)


def test_content_that_stands_in_a_log_is_not_read():
    """What is live only is in no log; whoever can write into one makes no event of it."""
    kept = {"type": "feedback_generated", "at": "2026-01-01T00:00:00Z", "round": 1}
    kept |= {"text": "Go on.", "should_continue": True, "feedback": "a text in its place"}
    event = event_of("r", LoggedEvent(seq=1, event=kept))
    assert (event.type, event.text, event.feedback) == ("feedback_generated", "Go on.", None)


def test_a_report_has_what_the_guide_says_of_it():
    guide = (Path(__file__).parents[3] / "docs/running.md").read_text("utf-8")
    section = guide.partition("\n## The status of a run\n")[2].partition("\n## ")[0]
    rows = section.partition("| attribute |")[2].splitlines()[2:]
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert set(names) >= {"steps", "reason", "seconds", "calls"}
    assert [name for name in names if not hasattr(RunReport, name)] == []
