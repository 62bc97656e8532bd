"""The live plan is a pure function of the events, the window and the time."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import AIMessage

from replan.events import types
from replan.log.apply import apply
from replan.log.report import RunReport
from replan.plan import PlanDocument, StepStatus
from replan.state.questions import Question
from replan.state.results import ExecutionStatus, SpecialistResult, TaskComplexity, ThinkingResult
from replan.state.usage import Usage
from replan.views.live.frame import ASCII, Window, frame, seconds, whole_plan

RUN = {"seq": 1, "run_id": "r", "round": 1}
POLICIES = """\
# Compare the EU's and the US's EV policy, in all their detail

- [x] 1. Find the EU's current EV policy and all of its amendments @researcher
- [ ] 2. 米国の現在の電気自動車政策を調べて補助金についてまとめる @researcher
- [ ] 3. [bold]Ask[/bold] 👨‍👩‍👧 the archive @archivist
- [ ] 4. Compare both @analyst (after 1, 2)
- [ ] 5. Say why the archive is closed @analyst (if 3 failed)
- [ ] 6. Write a brief @writer (after 4)
"""


def plan_of(text):
    return PlanDocument.parse(text).plan


def created(text):
    plan = plan_of(text)
    return types.PlanCreated(**RUN, plan=plan, markdown=plan.content)


def step(kind, step_id, specialist, attempt=1, **fields):
    return kind(**RUN, step_id=step_id, specialist=specialist, attempt=attempt, **fields)


def invoked(step_id, specialist, attempt=1):
    return step(types.SpecialistInvoked, step_id, specialist, attempt, task="x")


def done(step_id, specialist, status=ExecutionStatus.SUCCESS, attempt=1, **fields):
    result = SpecialistResult(
        step_id=step_id, specialist_name=specialist, status=status, duration=3.25, **fields
    )
    return step(types.SpecialistCompleted, step_id, specialist, attempt, result=result)


NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def at(second):
    return NOON + timedelta(seconds=second)


def after(report, event, second=9):
    return apply(report, event.replace(at=at(second)))


def report_of(*events):
    """Report events that happen one second after the other, from second 1 on."""
    report = RunReport.begun("r", NOON)
    for second, event in enumerate(events, 1):
        report = after(report, event, second)
    return report


def status_of(report, number):
    return next(each.status for each in report.steps if each.step.id == number)


def shown(report, width=59, height=19, now=10, **options):
    window = Window(width=width, height=height, **options)
    return [line.plain for line in frame(report, window, at(now))]


MIDWAY = (
    created(POLICIES),
    invoked(2, "researcher"),
    invoked(3, "archivist"),
    step(types.SpecialistRetried, 3, "archivist", error="busy\x1b[2J\nserver"),
    invoked(3, "archivist", 2),
    done(3, "archivist", ExecutionStatus.FAILED, 2, error="The archive is closed for the week."),
    invoked(5, "analyst"),
    step(types.StepDeferred, 6, "writer", waiting_for=(4,)),
)


def test_a_frame_of_60_columns():
    assert shown(report_of(*MIDWAY)) == [
        "Compare the EU's and the US's EV policy, in all their deta…",
        "✓ 1 Find the EU's current EV policy and… researcher",
        "⠋ 2 米国の現在の電気自動車政策を調べて…  researcher   8.0 s",
        "✗ 3 [bold]Ask[/bold] 👨👩👧 the archive  archivist    2.0 s",
        "    The archive is closed for the week.",
        "· 4 Compare both  waits for 2            analyst",
        "⠋ 5 Say why the archive is closed        analyst      3.0 s",
        "· 6 Write a brief  waits for 4           writer",
        "⠋ 10 s: 1 of 6 done, 1 failed, 2 running",
    ]


def calls_tool(step_id, call, kind=types.ToolInvoked, **fields):
    about = {"node": "specialist_a", "step_id": step_id, "specialist": "a", "attempt": 1}
    fields = {"tool": "price", "arguments": {"item": "x"}, "effects": "pure", **fields}
    return kind(**RUN, call=call, **about, **fields)


THREE = "- [ ] 1. Buy @a\n- [ ] 2. Wrap @a (after 1)\n- [ ] 3. Aside @a\n"


def test_a_running_step_says_which_tools_and_models_it_calls():
    asks = types.ModelInvoked(
        **RUN, call="0", node="n", step_id=1, specialist="a", attempt=1, model="gpt-5"
    )
    answered = types.ModelCompleted(
        **asks.model_dump(exclude={"type", "prompt", "provider", "is_reprompt"}), seconds=1.0
    )
    report = report_of(created(THREE), invoked(1, "a"), asks)
    assert shown(report)[1] == "    asks model gpt-5"
    hostile = calls_tool(1, "0.1", arguments={"item": "\x1b[2J\u202ex\n", "number": 2})
    report = report_of(created(THREE), invoked(1, "a"), asks, answered, calls_tool(1, "0.0"))
    assert shown(report)[1] == '    calls price(item="x")'
    report = after(report, hostile)
    assert shown(report)[1].startswith('    2 at once: calls price(item="\\u001b[2J')
    assert shown(report)[1].endswith('x\\n", number=2)')
    ended = [calls_tool(1, call, types.ToolCompleted, status="success") for call in ("0.0", "0.1")]
    ended = after(after(report, ended[0]), ended[1])
    assert shown(ended)[1] == "· 2 Wrap  waits for 1                             a"


def test_a_step_says_what_it_waits_for():
    report = report_of(created(THREE), invoked(1, "a"))
    assert shown(report)[1:] == [
        "· 2 Wrap  waits for 1                             a",
        "· 3 Aside  waits for its turn                     a",
        "⠋ 10 s: 0 of 3 done, 1 running",
    ]
    failed = after(report, done(1, "a", ExecutionStatus.FAILED, error="no"))
    assert "· 2 Wrap  blocked: 1 failed" in shown(failed)[2]


def test_what_is_asked_is_noted_and_counted():
    question = Question(
        key="1/a/1",
        step_id=1,
        specialist="a",
        kind="approval",
        text="May the tool order be called?",
        details={"tool": "order", "arguments": {"item": "chairs"}, "call": "0.0"},
    )
    asked = step(types.InputRequested, 1, "a", question=question)
    report = report_of(created(THREE), invoked(1, "a"), asked)
    assert shown(report)[1] == '    waits for approval: order(item="chairs")'
    assert shown(report)[-1] == "⠋ 10 s: 0 of 3 done, 1 waiting"
    report = report.after_answer("1/a/1")
    assert shown(report)[1:] == [
        "    answered",
        "· 2 Wrap  waits for 1                             a",
        "· 3 Aside                                         a",
        "⠋ 10 s: 0 of 3 done, judging",
    ]
    assert "answered" not in "".join(shown(after(report, invoked(1, "a", 2))))


def test_all_that_runs_is_seen_before_anything_is_said_of_it():
    text = "".join(f"- [ ] {n}. Step @a\n" for n in range(1, 31))
    busy = [each for n in range(10, 20) for each in (invoked(n, "a"), calls_tool(n, "0"))]
    lines = shown(report_of(created(text), *busy), height=14, width=59)
    assert [line for line in lines if "calls" in line] == []
    assert sum(line.startswith("⠋ 1") and "Step" in line for line in lines) == 10
    assert lines[-2] == "… and 18 pending"
    more = shown(report_of(created(text), *busy[:4]), height=14, width=59)
    assert sum("calls price" in line for line in more) == 2


def test_a_narrow_frame_leaves_out_names_and_then_times():
    assert shown(report_of(*MIDWAY), width=30)[2:4] == [
        "⠋ 2 米国の現在の電気…    8.0 s",
        "✗ 3 [bold]Ask[/bold]…    2.0 s",
    ]
    assert shown(report_of(*MIDWAY), width=12)[2] == "⠋ 2 米国の…"


def test_a_window_without_unicode_gets_plain_signs():
    lines = shown(report_of(*MIDWAY), signs=ASCII)
    assert [line[0] for line in lines[1:5]] == ["x", "|", "!", " "]


def test_before_there_is_a_plan_the_activity_is_shown():
    assert shown(RunReport.begun("r", NOON)) == ["⠋ 10 s: thinking"]
    for complexity, activity in ((TaskComplexity.COMPLEX, "planning"), ("simple", "answering")):
        thought = ThinkingResult(
            thought="", complexity=complexity, timestamp=datetime(2030, 1, 1, tzinfo=UTC)
        )
        report = report_of(types.ThinkingCompleted(**RUN, thinking=thought))
        assert shown(report) == [f"⠋ 10 s: {activity}"]


def test_a_further_attempt_says_what_it_comes_after():
    report = report_of(*MIDWAY[:5])
    assert "    attempt 2 after: busy�[2J server" in shown(report)
    ended = shown(report_of(*MIDWAY[:5], done(3, "archivist", attempt=2)))
    assert not [line for line in ended if "after:" in line]


def test_a_step_of_two_specialists_ends_with_the_second_and_one_success_is_enough():
    text = "- [ ] 1. A @a @b\n"
    failed = done(1, "a", ExecutionStatus.FAILED, error="no")
    both = report_of(created(text), invoked(1, "a"), invoked(1, "b"), failed)
    assert status_of(both, 1) is StepStatus.EXECUTING
    assert status_of(after(both, done(1, "b")), 1) is StepStatus.COMPLETED


def test_a_revision_that_tries_a_failed_step_again_starts_it_anew():
    report = report_of(*MIDWAY)
    revised = plan_of(POLICIES.replace("the archive @archivist", "another one @analyst"))
    report = after(
        report, types.PlanUpdated(**RUN, plan=revised, markdown="", changes={"x": 1}), 20
    )
    assert status_of(report, 3) is StepStatus.PENDING
    assert "for the week" not in "".join(shown(report))
    assert "analyst" in shown(report)[3]


def test_a_skipped_step_says_why():
    plan = plan_of(POLICIES)
    skipped = plan.step(5).replace(status=StepStatus.SKIPPED, feedback="Step 3 is completed.")
    report = report_of(types.PlanCreated(**RUN, plan=plan.with_steps(skipped), markdown=""))
    lines = shown(report)
    assert lines[5] == "– 5 Say why the archive is closed        analyst"
    assert lines[6] == "    Step 3 is completed."


def test_a_limit_is_the_activity():
    report = report_of(created(POLICIES), types.LimitReached(**RUN, limit="max_rounds", value=1))
    assert shown(report)[-1] == "⠋ 10 s: 1 of 6 done, ending: max_rounds is reached"


def test_the_newest_lines_of_the_answer_stand_below():
    answer = "".join(f"{n}. Line of the answer\n" for n in range(1, 40)) + "the end"
    report = report_of(created(POLICIES), types.AnswerToken(**RUN, text=answer))
    lines = shown(report)
    assert lines[-1] == "the end"
    assert lines[-2] == "39. Line of the answer"
    assert len(lines) == 19
    assert report_of(*[types.AnswerToken(**RUN, text="x"), types.AnswerReset(**RUN)]).answer == ""


def test_verbose_shows_the_newest_line_of_a_specialist():
    said = step(types.SpecialistToken, 2, "researcher", text="first\nsecond [x]")
    report = report_of(created(POLICIES), invoked(2, "researcher"), said)
    assert "    second [x]" in shown(report, verbose=True)
    assert "    second [x]" not in shown(report)


def test_a_pipeline_of_a_session_shows_its_phase_and_what_is_said_in_it():
    def entered(phase):
        return types.PhaseEntered(**RUN, phase=phase)

    def says(text):
        return step(types.SpecialistToken, 0, "", text=text)

    events = [entered("draft"), says("Tea is "), says("fine.")]
    assert shown(report_of(*events)) == ["", "Tea is fine.", "⠋ 10 s: phase draft"]
    assert shown(report_of(*events, entered("critique"))) == ["⠋ 10 s: phase critique"]
    # In a plan, a phase ends what was said before.
    entered_2 = types.PhaseEntered(**RUN, phase="draft", step_id=2, specialist="researcher")
    said = step(types.SpecialistToken, 2, "researcher", text="old text")
    report = report_of(created(POLICIES), invoked(2, "researcher"), said, entered_2)
    assert not [line for line in shown(report, verbose=True) if "old text" in line]


def test_a_plan_longer_than_the_screen_shows_what_matters_now_and_counts():
    text = "".join(f"- [{'x' if n < 30 else ' '}] {n}. Step @a\n" for n in range(1, 101))
    report = report_of(created(text), invoked(50, "a"), invoked(97, "a"))
    assert [line.rstrip() for line in shown(report, height=8, width=40)] == [
        "·  30 Step",
        "·  31 Step",
        "·  32 Step",
        "·  33 Step",
        "⠋  50 Step                         8.0 s",
        "⠋  97 Step                         7.0 s",
        "… and 29 done, 65 pending",
        "⠋ 10 s: 29 of 100 done, 2 running",
    ]


@given(st.integers(1, 130), st.integers(1, 40), st.integers(0, len(MIDWAY)))
def test_a_frame_fits_its_window(width, height, upto):
    events = [*MIDWAY[:upto], types.AnswerToken(**RUN, text="日本語のanswer " * 40)]
    lines = frame(report_of(*events), Window(width=width, height=height), at(10))
    assert len(lines) <= height
    assert all(line.cell_len <= width for line in lines)


def test_the_whole_plan_is_drawn_in_the_end_with_whole_reasons():
    end = types.TaskCompleted(**RUN, outcome="partial", answer=AIMessage("A"), usage=Usage())
    window = Window(width=30, height=3)
    lines = [line.plain for line in whole_plan(report_of(*MIDWAY, end), window, at(9))]
    assert lines[5:7] == ["    The archive is closed for", "    the week."]
    # Two steps were at work when it ended.
    assert lines.count("    stopped") == 2
    assert len(lines) == 11


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (12.3, "12 s"), (59.7, "1:00"), (125, "2:05")],
)
def test_times_are_short(value, text):
    assert seconds(value) == text
    assert seconds(3725) == "1:02:05"
