"""Events become lines."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage

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
PLAN = TaskPlan(
    version=2,
    steps=(
        PlanStep(id=1, description="Ask", status=StepStatus.COMPLETED),
        PlanStep(id=2, description="Count\nall", assigned_to="clerk", dependencies=(1,)),
    ),
)


@pytest.fixture
def tell():
    """Tell a terminal events, each half a second after the one before it."""

    def told(*events, **options):
        return told_by(Lines(workspace=Path("work"), **options), *events)

    return told


def told_by(lines, *events):
    text, report = "", RunReport.begun("r", NOON)
    for number, event in enumerate(events, 1):
        timed = event.replace(at=NOON + timedelta(seconds=number / 2))
        before, report = report, apply(report, timed)
        text += lines.lines_of(timed, before, report)
    return text


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


def test_warnings_stand_in_the_last_lines_one_line_each(tell):
    text = tell(end(warnings=("Step 1 names nobody.", "In the plan,\nline 2.")))
    assert text.endswith(
        "warning: Step 1 names nobody.\nwarning: In the plan, line 2.\n"
        "completed: 0 model calls, 0 tokens, 0.5 s\n"
    )


def test_a_run_is_told_from_thinking_to_its_account(tell):
    artifact = Artifact(path="out/r.md", title="Report")
    text = tell(
        types.RunStarted(**RUN, request="x"),
        types.ThinkingStarted(**RUN),
        types.PlanCreated(**RUN, plan=PLAN, markdown="# T\n\n- [ ] 1. Ask\n"),
        types.SpecialistInvoked(**STEP, task="Count\nall"),
        types.SpecialistToken(**STEP, text="1, 2"),
        done(artifacts=(artifact,)),
        types.PlanUpdated(**RUN, plan=PLAN, markdown="ignored"),
        *tokens("Forty", "-two."),
        end(calls=2, input_tokens=30, output_tokens=12),
    )
    assert text == (
        "thinking\n"
        "\n# T\n\n- [ ] 1. Ask\n\n"
        "-> step 2 clerk: Count all\n"
        "[x] step 2 clerk (0.4 s)\n"
        "\nForty-two.\n"
        "\nfile: work/out/r.md (Report)\n"
        "completed: 2 model calls, 42 tokens, 5.0 s\n"
    )


def test_failures_retries_and_waiting_steps_are_told(tell):
    assert tell(
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
    ) == (
        "[~] step 2 clerk: busy server; trying again\n"
        "[!] step 2 clerk: gone (0.4 s)\n"
        "[~] step 2 clerk: half (0.4 s)\n"
        "[ ] step 2 clerk: waits for 1, 3\n"
        "[ ] step 2 clerk: waits for another round\n"
        "limit reached: max_cost=0.5 of specialist clerk\n"
        "limit reached: max_rounds=3\n"
        "a content filter cut the reply off\n"
        "[x] step 2 clerk (incomplete: the reply was cut off at its length limit) (0.4 s)\n"
        "unreadable reply of think: No key. Instead: a rule\n"
    )


def test_a_revision_shows_the_open_steps(tell):
    revised = types.PlanUpdated(
        **RUN, plan=PLAN, markdown="", changes={"modified": {"2": {}}}, by="person"
    )
    assert tell(revised) == (
        "plan revised (version 2, by person); open steps:\n    [ ] 2 Count all @clerk (after 1)\n"
    )


def test_feedback_is_told_only_if_the_work_goes_on(tell):
    def said(*, should_continue):
        feedback = FeedbackResult(feedback="Look again.", should_continue=should_continue)
        return types.FeedbackGenerated(**RUN, feedback=feedback)

    assert tell(said(should_continue=True)) == "judged: Look again.\n"
    assert tell(said(should_continue=False)) == ""


def test_a_thought_is_not_told(tell):
    thinking = ThinkingResult(
        thought="", complexity=TaskComplexity.SIMPLE, timestamp=datetime(2030, 1, 1, tzinfo=UTC)
    )
    assert tell(types.ThinkingCompleted(**RUN, thinking=thinking)) == ""


def test_an_answer_that_did_not_stream_is_printed_at_the_end(tell):
    assert tell(end("One.\n\nTwo.\n")).startswith("\nOne.\n\nTwo.\n\ncompleted: 0 model calls")


def test_an_answer_that_streamed_is_not_printed_twice(tell):
    assert tell(*tokens("Forty-two.\n"), end("Forty-two.\n")).count("Forty-two.") == 1
    assert tell(*tokens("Forty-", "two."), end("Forty-two.\nMore.")).count("More.") == 1


def test_what_is_told_amid_an_answer_begins_on_a_new_line(tell):
    cut = types.LimitReached(**RUN, limit="unfinished_reply", value=12)
    text = tell(*tokens("Paris is the"), cut, end("Paris is the", outcome="partial"))
    assert text.startswith("\nParis is the\nthe reply ends in the middle of its JSON\n\npartial: ")
    text = tell(*tokens("Paris ", "is"), cut, *tokens(" the"), end("Paris is the end."))
    told = "the reply ends in the middle of its JSON"
    assert text.startswith(f"\nParis is\n{told}\n the end.\n\ncompleted")


def test_a_restarted_answer_is_announced_and_begins_on_a_new_line(tell):
    text = tell(*tokens("Wro"), types.AnswerReset(**RUN), *tokens("Right."), end("Right."))
    assert text.startswith("\nWro\n(the answer begins again)\n\nRight.\n")
    assert text.count("Right.") == 1


def test_an_answer_other_than_the_streamed_one_counts(tell):
    assert "\nSorry.\n" in tell(*tokens("Forty"), end("Sorry.", outcome="failed"))


def test_quiet_gives_the_answer_alone(tell):
    events = [types.ThinkingStarted(**RUN), done(), *tokens("Forty-two."), end()]
    assert tell(*events, quiet=True) == "Forty-two.\n"
    assert tell(types.ThinkingStarted(**RUN), end(), quiet=True) == "Forty-two.\n"


def test_what_a_model_says_cannot_steer_the_terminal(tell):
    text = tell(*tokens("\x1b[2Jgone\r"), types.SpecialistInvoked(**STEP, task="\x1b]0;title\x07"))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\r" not in text


def test_a_run_that_breaks_off_leaves_the_cursor_on_a_new_line():
    lines = Lines(workspace=Path())
    assert lines.broken_off() == ""
    told_by(lines, *tokens("half"))
    assert lines.broken_off() == "\n"


def test_verbose_tells_what_specialists_say_line_by_line(tell):
    def said(text, step_id=2):
        return types.SpecialistToken(**{**STEP, "step_id": step_id}, text=text)

    text = tell(
        said("One\nTw"), said("other\n", 3), said("o"), done(), said("lost", 3), verbose=True
    )
    assert text == (
        "step 2 clerk | One\nstep 3 clerk | other\nstep 2 clerk | Two\n[x] step 2 clerk (0.4 s)\n"
    )


def test_verbose_tells_what_a_pipeline_says_phase_by_phase(tell):
    def entered(phase, **where):
        return types.PhaseEntered(**RUN, phase=phase, **where)

    where = {"step_id": 2, "specialist": "clerk"}
    alone = {**STEP, "step_id": 0, "specialist": ""}
    text = tell(
        entered("draft", **where),
        types.SpecialistToken(**STEP, text="Tea."),
        entered("critique", **where),
        entered("draft"),
        types.SpecialistToken(**alone, text="Te"),
        types.SpecialistToken(**alone, text="a."),
        entered("critique"),
        verbose=True,
    )
    assert text == (
        "step 2 clerk phase draft\nstep 2 clerk | Tea.\nstep 2 clerk phase critique\n"
        "phase draft\nTea.\nphase critique\n"
    )


def test_verbose_tells_thoughts_and_every_judgement(tell):
    thinking = ThinkingResult(
        thought="",
        complexity=TaskComplexity.COMPLEX,
        reasoning="Two\nsources.",
        timestamp=datetime(2030, 1, 1, tzinfo=UTC),
    )
    judged = FeedbackResult(feedback="All is done.", should_continue=False)
    events = [
        types.ThinkingCompleted(**RUN, thinking=thinking),
        types.FeedbackGenerated(**RUN, feedback=judged),
    ]
    assert tell(*events, verbose=True) == ("judged complex: Two sources.\njudged: All is done.\n")


def test_an_event_with_half_a_character_is_json_all_the_same():
    line = json_line(types.AnswerToken(**RUN, text="a\ud800\x9b\u2028é"))
    assert json.loads(line)["text"] == "a\ud800\x9b\u2028é"
    assert json_line(types.AnswerToken(**RUN, text="\x9bé")).count("\\u009b") == 1
    turning = "\u061c\u200e\u200f\u202a\u202e\u2066\u2069"
    assert json_line(types.AnswerToken(**RUN, text=turning)).isascii()
    assert "\n" not in line[:-1]


def test_a_persons_word_on_a_step_is_told(tell):
    again = types.RunCorrected(
        **RUN, action="retry", step_id=3, by="eva\x1b[2J", origin="0123456789"
    )
    assert tell(again) == "continues from run 01234567: step 3 is done again, by eva\ufffd[2J\n"
    assert tell(types.RunCorrected(**RUN, action="skip", step_id=3)) == "step 3 is left out\n"


def test_what_becomes_of_an_edit_and_a_message_is_told(tell):
    def steered(status, **fields):
        about = {"kind": "edit", "request": "e", "by": "eva\x1b[2J", **fields}
        return tell(types.RunSteered(**RUN, status=status, **about))

    assert steered("waits", waiting_for=(1,)) == "the edit of eva\ufffd[2J waits for step 1\n"
    assert "waits for steps 1, 2" in steered("waits", waiting_for=(1, 2))
    assert "is noticed" in steered("waits")
    assert "makes version 2 of the plan" in steered("taken", version=2)
    assert steered("refused", by="", reason="Too late.") == (
        "the edit of a person is refused: Too late.\n"
    )
    said = steered("taken", kind="message", text="Also 2023")
    assert said == "the host has heard the message of eva\ufffd[2J: Also 2023\n"


def test_a_doubt_that_was_told_is_not_told_again_at_the_end(tell):
    doubt = ParseWarning(line=1, kind="name", step=2, text="@b")
    told = tell(
        types.PlanParseWarning(**RUN, parse_warnings=(doubt,)),
        end(warnings=(f"In the plan, {doubt}.", "x")),
    )
    assert told.count("@b") == 1
    assert "warning: x\n" in told
