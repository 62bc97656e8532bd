"""What a waiting run asks, and what an answer makes of it."""

from datetime import UTC, datetime

import pytest
from langgraph.types import Interrupt, StateSnapshot

from replan.events import SpecialistInvoked
from replan.log.apply import apply
from replan.log.report import RunReport
from replan.plan.model import PlanStep, TaskPlan
from replan.runs.asked.asks import open_asks
from replan.state.person.waiting import asks_of
from replan.state.questions import Question, is_of_plan
from replan.storage.memory_log import memory_log
from replan.views.run.evidence import evidence_of
from replan.views.run.open_asks import ask_lines, waiting_lines

FOREIGN = Interrupt(value="Which door?", id="0123456789abcdef")


def question(step=1, ordinal=1, **fields):
    key = f"{step}/writer/{ordinal}"
    text = fields.pop("text", "Why?")
    return Question(key=key, step_id=step, specialist="writer", text=text, **fields)


def gate(*questions):
    asked = [each.model_dump(mode="json", exclude={"usage", "round"}) for each in questions]
    return Interrupt(value={"questions": asked, "problem": ""}, id="gate")


def ask(**fields):
    return Question(**{"key": "1/writer/1", "kind": "question", "text": "Why?", **fields})


def test_questions_of_steps_and_of_foreign_graphs_are_read():
    first, second, foreign = asks_of([gate(question(1), question(2)), FOREIGN])
    assert (first.key, first.who, first.is_keyed) == ("1/writer/1", "step 1 writer", True)
    assert second.interrupt == "gate"
    assert (foreign.key, foreign.who, foreign.text) == ("01234567", "", "Which door?")


def test_a_question_of_a_graph_inside_of_a_step_names_both_steps():
    inside = question(1).replace(key="3/house/1/writer/1")
    (asked,) = asks_of([gate(inside)])
    assert asked.who == "step 3 house, step 1 writer"


@pytest.mark.parametrize(
    ("key", "who"),
    # A fingerprint that ends the key of an edited plan may look like a number.
    [("3/house/plan/2/1", "step 3 house"), ("plan/2/1/12345678", "")],
)
def test_a_plan_is_asked_about_by_its_host_wherever_the_host_is(key, who):
    plan = Question(key=key, kind="plan", text="- [ ] 1. One @a", details={"reason": ""})
    (asked,) = asks_of([gate(plan)])
    assert (asked.key, asked.who, asked.is_keyed) == (key, who, False)
    assert is_of_plan(key)


async def test_what_nobody_has_answered_is_gathered_from_state_and_log():
    log = memory_log()
    for each in (question(1), question(2, text="Known."), question(3), question(4)):
        await log.note("run", f"question/{each.key}", each.model_dump(mode="json"))
    await log.note("run", "answer/3/writer/1", "Said.")
    plan = TaskPlan(steps=tuple(PlanStep(id=n, description="Go") for n in (1, 2, 3)))
    stated = question(2, text="Known.")
    values = {"run_id": "run", "current_plan": plan, "questions": {stated.key: stated}}
    interrupts = (gate(stated),)
    snapshot = StateSnapshot(values, (), {}, None, None, None, (), interrupts)
    found = await open_asks(snapshot, log)
    # The third is answered, and there is no fourth step any more.
    assert {each.key: each.interrupt for each in found} == {"2/writer/1": "gate", "1/writer/1": ""}


NONE = RunReport.begun("a1b2", datetime(2026, 1, 1, tzinfo=UTC))


def lines_of(asks, resume=""):
    return waiting_lines(asks, [evidence_of(each, NONE) for each in asks], "a1b2", resume)


def test_what_is_not_kept_cannot_go_on():
    for asks in ([ask()], [ask(kind="plan")]):
        assert "with: " not in "".join(lines_of(asks))


def test_a_tool_call_is_told_with_its_arguments():
    arguments = {"to": "é", "copies": [1, 2], "text": "long " * 200}
    call = ask(kind="approval", text="May it?", details={"tool": "mail", "arguments": arguments})
    first, to, copies, text = ask_lines(call, evidence_of(call, NONE))
    assert (first, to, copies) == ("May it?", "  to: é", "  copies: [1, 2]")
    assert text.startswith("  text: long long")
    assert text.endswith("… (999 characters; `replan show RUN --json` has all)")
    assert len(text) < 400
    assert lines_of([call])[1:3] == ["  1/writer/1: May it?", "    to: é"]


def test_what_began_before_its_plan_is_unsafe_by_who_does_it():
    step = {"run_id": "a1b2", "round": 1, "step_id": 2, "specialist": "Payer"}
    begun = SpecialistInvoked(**step, task="Pay", attempt=1, seq=1, at=datetime.now(UTC))
    report = apply(NONE.model_copy(update={"unsafe": ("payer",)}), begun)
    (early,) = report.steps
    assert early.step.specialists == ()
    assert report.is_unsafe(early.step)
