"""Events become lines, as the golden file of lines has them."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from langchain_core.messages import AIMessage

from golden import check_golden
from replan.events import types
from replan.log.apply import apply
from replan.log.report import RunReport
from replan.plan.markdown.overlooked import ParseWarning
from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.state.results import (
    Artifact,
    ExecutionStatus,
    FeedbackResult,
    SpecialistResult,
    TaskComplexity,
    ThinkingResult,
)
from replan.state.usage import Usage
from replan.views.live.plain import Lines
from replan.views.live.reporters import json_line

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
RUN = {"seq": 1, "run_id": "r"}
STEP = {**RUN, "round": 1, "step_id": 2, "specialist": "clerk"}
ALONE = {**STEP, "step_id": 0, "specialist": ""}
WHERE = {"step_id": 2, "specialist": "clerk"}
STEPS = (
    PlanStep(id=1, description="Ask", status=StepStatus.COMPLETED),
    PlanStep(id=2, description="Count\nall", assigned_to="clerk", dependencies=(1,)),
)
PLAN = TaskPlan(version=2, steps=STEPS)
REPORT = Artifact(path="out/r.md", title="Report")
DOUBT = ParseWarning(line=1, kind="name", step=2, text="@b")
CUT = types.LimitReached(**RUN, limit="unfinished_reply", value=12)


def done(status=ExecutionStatus.SUCCESS, **fields):
    return types.SpecialistCompleted(
        **STEP, result=SpecialistResult(status=status, duration=0.44, **fields)
    )


def end(answer="Forty-two.", outcome="completed", warnings=(), **usage):
    return types.TaskCompleted(
        **RUN, outcome=outcome, answer=AIMessage(answer), usage=Usage(**usage), warnings=warnings
    )


def tokens(*texts):
    return [types.AnswerToken(**RUN, text=text) for text in texts]


def says(text, **where):
    return types.SpecialistToken(**{**STEP, **where}, text=text)


def entered(phase, **where):
    return types.PhaseEntered(**RUN, phase=phase, **where)


def judged(*, should_continue):
    feedback = FeedbackResult(feedback="Look again.", should_continue=should_continue)
    return types.FeedbackGenerated(**RUN, feedback=feedback)


def thought(complexity):
    about = {"thought": "", "timestamp": NOON, "reasoning": "Two\nsources."}
    return types.ThinkingCompleted(**RUN, thinking=ThinkingResult(complexity=complexity, **about))


def steered(status, **fields):
    about = {"kind": "edit", "request": "e", "by": "eva\x1b[2J", **fields}
    return types.RunSteered(**RUN, status=status, **about)


TOLD = {
    "from thinking to the account": [
        types.RunStarted(**RUN, request="x"),
        types.ThinkingStarted(**RUN),
        thought(TaskComplexity.SIMPLE),
        types.PlanCreated(**RUN, plan=PLAN, markdown="# T\n\n- [ ] 1. Ask\n"),
        types.SpecialistInvoked(**STEP, task="Count\nall"),
        says("1, 2"),
        done(artifacts=(REPORT,)),
        types.PlanUpdated(**RUN, plan=PLAN, markdown="ignored"),
        *tokens("Forty", "-two."),
        end(calls=2, input_tokens=30, output_tokens=12),
    ],
    "failures and limits": [
        types.SpecialistRetried(**STEP, error="busy\nserver"),
        done(ExecutionStatus.FAILED, error="gone"),
        done(ExecutionStatus.PARTIAL, error="half"),
        types.StepDeferred(**STEP, waiting_for=(1, 3)),
        types.StepDeferred(**STEP, waiting_for=()),
        types.LimitReached(**RUN, limit="max_cost", value=0.5, scope="specialist/clerk"),
        types.LimitReached(**RUN, limit="max_rounds", value=3),
        types.LimitReached(**RUN, limit="content_filter", value=0),
        done(cut="reply_length"),
        types.ReplyParseFailed(**RUN, node="think", problem="No key.", fallback="a rule"),
    ],
    "a revision and judgements": [
        types.PlanUpdated(
            **RUN, plan=PLAN, markdown="", changes={"modified": {"2": {}}}, by="person"
        ),
        judged(should_continue=True),
        judged(should_continue=False),
    ],
    "an answer that did not stream": [end("One.\n\nTwo.\n")],
    "an answer that streamed": [*tokens("Forty-two.\n"), end("Forty-two.\n")],
    "an answer of which more streamed": [*tokens("Forty-", "two."), end("Forty-two.\nMore.")],
    "another answer than the streamed one": [*tokens("Forty"), end("Sorry.", outcome="failed")],
    "an answer that begins again": [*tokens("Wro"), types.AnswerReset(**RUN), *tokens("Right.")],
    "a word amid an answer": [*tokens("Paris is the"), CUT, end("Paris is the", "partial")],
    "a word amid a stream": [
        *tokens("Paris ", "is"),
        CUT,
        *tokens(" the"),
        end("Paris is the end."),
    ],
    "what steers terminals": [
        *tokens("\x1b[2Jgone\r"),
        types.SpecialistInvoked(**STEP, task="\x1b]0;title\x07"),
    ],
    "a doubt that is told once": [
        types.PlanParseWarning(**RUN, parse_warnings=(DOUBT,)),
        end(warnings=(f"In the plan, {DOUBT}.", "Step 1 names nobody.", "In it,\nline 2.")),
    ],
    "words of persons": [
        types.RunCorrected(**RUN, action="retry", step_id=3, by="eva\x1b[2J", origin="0123456789"),
        types.RunCorrected(**RUN, action="skip", step_id=3),
        steered("waits", waiting_for=(1,)),
        steered("waits", waiting_for=(1, 2)),
        steered("waits"),
        steered("taken", version=2),
        steered("refused", by="", reason="Too late."),
        steered("refused", by="otto", reason="Step 1 is at work.", version=2),
        steered("taken", kind="message", text="Also 2023"),
    ],
    "quiet: an answer that streamed": [
        types.ThinkingStarted(**RUN),
        done(),
        *tokens("42"),
        end("42"),
    ],
    "quiet: an answer that did not stream": [types.ThinkingStarted(**RUN), end()],
    "verbose: what specialists say line by line": [
        says("One\nTw"),
        says("other\n", step_id=3),
        says("o"),
        done(),
        says("lost", step_id=3),
    ],
    "verbose: what a pipeline says phase by phase": [
        entered("draft", **WHERE),
        says("Tea."),
        entered("critique", **WHERE),
        entered("draft"),
        types.SpecialistToken(**ALONE, text="Te"),
        types.SpecialistToken(**ALONE, text="a."),
        entered("critique"),
    ],
    "verbose: thoughts and judgements": [
        thought(TaskComplexity.COMPLEX),
        judged(should_continue=False),
    ],
}


def lines_of(lines, events):
    """Tell a terminal events, each half a second after the one before it."""
    text, report = "", RunReport.begun("r", NOON)
    for number, event in enumerate(events, 1):
        timed = event.replace(at=NOON + timedelta(seconds=number / 2))
        before, report = report, apply(report, timed)
        text += lines.lines_of(timed, before, report)
    return text


def test_events_are_told_as_the_golden_file_has_them():
    shown = {
        name: lines_of(
            Lines(
                workspace=Path("work"),
                quiet=name.startswith("quiet"),
                verbose=name.startswith("verbose"),
            ),
            events,
        )
        for name, events in TOLD.items()
    }
    check_golden(Path(__file__).parent / "golden" / "lines.txt", shown)
    assert not {"\x1b", "\x07", "\r"} & {*"".join(shown.values())}


def test_a_run_that_breaks_off_leaves_the_cursor_on_a_new_line():
    lines = Lines(workspace=Path())
    assert lines.broken_off() == ""
    lines_of(lines, tokens("half"))
    assert lines.broken_off() == "\n"


def test_an_event_with_half_a_character_is_json_all_the_same():
    text = "a\ud800\x9b\u2028é\u061c\u200e\u200f\u202a\u202e\u2066\u2069"
    line = json_line(types.AnswerToken(**RUN, text=text))
    assert json.loads(line)["text"] == text
    assert "\\u009b" in line
    assert line.replace("é", "").isascii()
    assert "\n" not in line[:-1]
