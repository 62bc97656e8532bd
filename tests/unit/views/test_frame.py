"""The live plan is a pure function of the events, the window and the time."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import AIMessage

from golden import check_golden
from replan.log.apply import apply
from replan.log.events import types
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
THREE = "- [ ] 1. Buy @a\n- [ ] 2. Wrap @a (after 1)\n- [ ] 3. Aside @a\n"
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
FAILED = ExecutionStatus.FAILED


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


def says(text, step_id=0, specialist=""):
    return step(types.SpecialistToken, step_id, specialist, text=text)


def entered(phase, **where):
    return types.PhaseEntered(**RUN, phase=phase, **where)


def calls_tool(call, kind=types.ToolInvoked, step_id=1, **fields):
    about = {"node": "specialist_a", "step_id": step_id, "specialist": "a", "attempt": 1}
    fields = {"tool": "price", "arguments": {"item": "x"}, "effects": "pure", **fields}
    return kind(**RUN, call=call, **about, **fields)


def thought(complexity):
    thinking = ThinkingResult(thought="", complexity=complexity, timestamp=NOON)
    return types.ThinkingCompleted(**RUN, thinking=thinking)


def at(second):
    return NOON + timedelta(seconds=second)


def report_of(events):
    """Report events that happen one second after the other, from second 1 on."""
    report = RunReport.begun("r", NOON)
    for second, event in enumerate(events, 1):
        report = apply(report, event.replace(at=at(second)))
    return report


MIDWAY = (
    created(POLICIES),
    invoked(2, "researcher"),
    invoked(3, "archivist"),
    step(types.SpecialistRetried, 3, "archivist", error="busy\x1b[2J\nserver"),
    invoked(3, "archivist", 2),
    done(3, "archivist", FAILED, 2, error="The archive is closed for the week."),
    invoked(5, "analyst"),
    step(types.StepDeferred, 6, "writer", waiting_for=(4,)),
)
BOUGHT = (created(THREE), invoked(1, "a"))
ASKS = types.ModelInvoked(
    **RUN, call="0", node="n", step_id=1, specialist="a", attempt=1, model="gpt-5"
)
HEARD = types.ModelCompleted(
    **ASKS.model_dump(exclude={"type", "prompt", "provider", "is_reprompt"}), seconds=1.0
)
CALLS = (
    calls_tool("0.0"),
    calls_tool("0.1", arguments={"item": "\x1b[2J\u202ex\n", "number": 2}),
)
ENDED = [calls_tool(call, types.ToolCompleted, status="success") for call in ("0.0", "0.1")]
ORDER = Question(
    key="1/a/1",
    step_id=1,
    specialist="a",
    kind="approval",
    text="May the tool order be called?",
    details={"tool": "order", "arguments": {"item": "chairs"}, "call": "0.0"},
)
ASKED = (
    step(types.AttemptEnded, 1, "a", outcome="waiting"),
    step(types.InputRequested, 1, "a", question=ORDER),
)
THIRTY = "".join(f"- [ ] {n}. Step @a\n" for n in range(1, 31))
BUSY = [each for n in range(10, 20) for each in (invoked(n, "a"), calls_tool("0", step_id=n))]
HUNDRED = "".join(f"- [{'x' if n < 30 else ' '}] {n}. Step @a\n" for n in range(1, 101))
REVISED = plan_of(POLICIES.replace("the archive @archivist", "another one @analyst"))
SKIPPED = plan_of(POLICIES).step(5).replace(status=StepStatus.SKIPPED, feedback="Step 3 is done.")
ANSWER = "".join(f"{n}. Line of the answer\n" for n in range(1, 40)) + "the end"
END = types.TaskCompleted(**RUN, outcome="partial", answer=AIMessage("A"), usage=Usage())

# Events, and the window that shows them.
FRAMES = {
    "midway": (MIDWAY, {}),
    "30 columns": (MIDWAY, {"width": 30}),
    "12 columns": (MIDWAY, {"width": 12}),
    "plain signs": (MIDWAY, {"signs": ASCII}),
    "a model is asked": ((*BOUGHT, ASKS), {}),
    "a tool is called": ((*BOUGHT, ASKS, HEARD, CALLS[0]), {}),
    "two tools are called": ((*BOUGHT, ASKS, HEARD, *CALLS), {}),
    "tools have ended": ((*BOUGHT, ASKS, HEARD, *CALLS, *ENDED), {}),
    "a step blocks another": ((*BOUGHT, done(1, "a", FAILED, error="no")), {}),
    "a question": ((*BOUGHT, *ASKED), {}),
    "nothing yet": ((), {}),
    "before a plan": ((thought(TaskComplexity.COMPLEX),), {}),
    "before an answer": ((thought("simple"),), {}),
    "a second attempt": (MIDWAY[:5], {}),
    "after a second attempt": ((*MIDWAY[:5], done(3, "archivist", attempt=2)), {}),
    "a failed step is tried again": (
        (*MIDWAY, types.PlanUpdated(**RUN, plan=REVISED, markdown="", changes={"title": "x"})),
        {},
    ),
    "a step was skipped": (
        (types.PlanCreated(**RUN, plan=plan_of(POLICIES).with_steps(SKIPPED), markdown=""),),
        {},
    ),
    "a limit": ((created(POLICIES), types.LimitReached(**RUN, limit="max_rounds", value=1)), {}),
    "the end of an answer": ((created(POLICIES), types.AnswerToken(**RUN, text=ANSWER)), {}),
    "an answer is taken back": (
        (types.AnswerToken(**RUN, text="x"), types.AnswerReset(**RUN)),
        {},
    ),
    "verbose": (
        (created(POLICIES), invoked(2, "researcher"), says("first\nsecond [x]", 2, "researcher")),
        {"verbose": True},
    ),
    "not verbose": (
        (created(POLICIES), invoked(2, "researcher"), says("first\nsecond [x]", 2, "researcher")),
        {},
    ),
    "a phase": ((entered("draft"), says("Tea is "), says("fine.")), {}),
    "the next phase": ((entered("draft"), says("Tea is fine."), entered("critique")), {}),
    "a phase in a plan": (
        (
            created(POLICIES),
            invoked(2, "researcher"),
            says("old text", 2, "researcher"),
            entered("draft", step_id=2, specialist="researcher"),
        ),
        {"verbose": True},
    ),
    "a hundred steps in eight lines": (
        (created(HUNDRED), invoked(50, "a"), invoked(97, "a")),
        {"height": 8, "width": 40},
    ),
    "ten of thirty steps at work": ((created(THIRTY), *BUSY), {"height": 14}),
    "two of thirty steps at work": ((created(THIRTY), *BUSY[:4]), {"height": 14}),
}


def test_a_frame_shows_what_its_golden_file_has():
    shown = {}
    for name, (events, window) in FRAMES.items():
        lines = frame(report_of(events), Window(**{"width": 59, "height": 19, **window}), at(10))
        shown[name] = "\n".join(line.plain.rstrip() for line in lines)
    whole = whole_plan(report_of((*MIDWAY, END)), Window(width=30, height=3), at(9))
    shown["the whole plan in the end"] = "\n".join(line.plain.rstrip() for line in whole)
    check_golden(Path(__file__).parent / "golden" / "frame.txt", shown)


def test_what_is_asked_is_noted_until_it_was_answered():
    report = report_of((*BOUGHT, *ASKED))
    lines = frame(report.after_answer("1/a/1"), Window(width=59, height=19), at(10))
    assert [lines[1].plain, lines[-1].plain] == ["    answered", "⠋ 10 s: 0 of 3 done, judging"]


def test_a_step_of_two_specialists_ends_with_the_second_and_one_success_is_enough():
    failed = done(1, "a", FAILED, error="no")
    both = (created("- [ ] 1. A @a @b\n"), invoked(1, "a"), invoked(1, "b"), failed)
    stands = [report_of(events).steps[0].status for events in (both, (*both, done(1, "b")))]
    assert stands == [StepStatus.EXECUTING, StepStatus.COMPLETED]


@given(st.integers(1, 130), st.integers(1, 40), st.integers(0, len(MIDWAY)))
def test_a_frame_fits_its_window(width, height, upto):
    events = [*MIDWAY[:upto], types.AnswerToken(**RUN, text="日本語のanswer " * 40)]
    lines = frame(report_of(events), Window(width=width, height=height), at(10))
    assert len(lines) <= height
    assert all(line.cell_len <= width for line in lines)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (12.3, "12 s"), (59.7, "1:00"), (3725, "1:02:05")],
)
def test_times_are_short(value, text):
    assert seconds(value) == text
