"""What each view shows of a run, as its golden file has it."""

import json
from pathlib import Path

import pytest

from golden import check_golden
from made_runs import STEPS, attempt, event, whole
from replan.plan.model import StepStatus, TaskPlan
from replan.state.questions import Question
from replan.views.run.attempts import attempts_lines, step_lines, step_record
from replan.views.run.history import history_lines, why_text
from replan.views.run.markdown_report import markdown_report
from replan.views.run.overview import money, overview, remark_texts, usage_text
from replan.views.run.run_record import run_record
from replan.views.run.timeline import timeline
from shown_runs import RUNS

GOLDEN = Path(__file__).parent / "golden"


def steps(run):
    return [step.step.id for step in run.steps]


def used(run):
    return [
        usage_text(run.calls, "EUR"),
        usage_text(run.calls, is_running=True),
        money(run.calls),
        *remark_texts(run.anomalies),
    ]


VIEWS = {
    "overview.txt": lambda run: overview(run, 100),
    "history.txt": lambda run: history_lines(run, has_failures=True),
    "history_of_step_2.txt": lambda run: history_lines(run, 2),
    "attempts.txt": lambda run: attempts_lines(run, run.attempts, run.results, has_host=True),
    "steps.txt": lambda run: [line for n in steps(run) for line in step_lines(run, n)],
    "timeline.txt": lambda run: timeline(run, 80),
    "prompts.txt": lambda run: attempts_lines(
        run, run.attempts, (), has_host=True, has_prompts=True
    ),
    "usage.txt": used,
    "report.md": lambda run: [markdown_report(run)],
    "record.json": lambda run: [json.dumps(run_record(run), indent=1, default=str)],
    "steps.json": lambda run: [json.dumps(step_record(run, n), default=str) for n in steps(run)],
}


@pytest.mark.usefixtures("times_of_utc")
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_shows_what_its_golden_file_has(name):
    shown = {run: "\n".join(VIEWS[name](RUNS[run])) for run in RUNS}
    check_golden(GOLDEN / name, shown)


def asks(*numbers):
    questions = [Question(key=f"{n}/w/1", kind="question", text="?", step_id=n) for n in numbers]
    return {"outcome": "waiting", "pending_questions": tuple(questions)}


OPEN = whole(ledger=()).events[:6]
KILLED = (attempt(1, 1, 1, 10, "failed", "ConnectionError: reset"), attempt(2, 1, 20, None))
NO = {"key": "plan", "kind": "plan", "action": "rejected"}
LEFT = (STEPS[0], STEPS[2], STEPS[2].replace(id=4, status=StepStatus.SKIPPED))
WHYS = {
    "two answers": asks(2, 3)
    | {
        "events": (
            *(event(n, 10 * n, "input_requested", key=f"{n}/w/1", step_id=n) for n in (2, 3)),
            event(4, 50, "run_stopped", reason="waiting"),
        )
    },
    "an answer, and no end": asks(2) | {"events": OPEN},
    "stopped": {
        "outcome": "interrupted",
        "events": (*OPEN, event(7, 30, "run_stopped", reason="interrupted", by="otto")),
    },
    "killed": {"outcome": "interrupted", "events": OPEN},
    "rejected": {
        "outcome": "rejected",
        "events": (event(1, 1, "answer_received", **NO, by="anna", text="too dear"),),
    },
    "rejected by whoever": {"outcome": "rejected", "events": ()},
    "a limit": {
        "limit_reached": "max_cost",
        "events": (*OPEN[:2], event(3, 9, "limit_reached", limit="max_cost", value=0.05)),
    },
    "not run": {"plan": TaskPlan(steps=LEFT)},
    "complete": {"plan": TaskPlan(steps=LEFT), "outcome": "completed"},
    "a later day": asks(2)
    | {"events": (*OPEN, event(7, 2 * 24 * 3600, "run_stopped", reason="waiting"))},
}


@pytest.mark.usefixtures("times_of_utc")
def test_why_a_run_ended_or_stands_still_is_told():
    shown = {name: why_text(whole(ledger=KILLED, **WHYS[name])) for name in WHYS}
    check_golden(GOLDEN / "why.txt", shown)
