"""A settled document, edited by a person, runs again exactly what the edit touches."""

from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from random_plans import random_plans
from replan.plan import (
    PlanDocument,
    StepStatus,
    TaskPlan,
    fingerprint,
    refresh_content,
    render,
    reopened,
    rerun_reasons,
    sealed,
    unsealed,
)
from replan.plan.markdown.seal import origin_of, read_fingerprints
from replan.plan.rerun import rerun_from

DONE = Path(__file__).with_name("settled.md").read_text("utf-8")
SETTLED = (StepStatus.COMPLETED, StepStatus.FAILED, StepStatus.SKIPPED)


def sealed_text(text: str) -> str:
    return sealed(PlanDocument.parse(text).plan).content


def again(text: str) -> dict[int, str]:
    return {each.step: each.reason for each in rerun_reasons(PlanDocument.parse(text).plan)}


def test_a_sealed_document_says_in_its_last_line_what_its_settled_steps_were_asked():
    text = sealed_text(DONE)
    assert text.startswith(DONE)
    plan = PlanDocument.parse(DONE).plan
    pairs = " ".join(f"{step.id}={fingerprint(step)}" for step in plan.steps[:5])
    assert text[len(DONE) :] == f"<!-- replan: {pairs} -->\n"
    assert again(text) == {}


def test_a_document_in_which_nothing_is_settled_is_left_alone():
    text = "- [ ] 1. Ask\n"
    assert sealed_text(text) == text
    assert sealed(TaskPlan()) == TaskPlan()


def test_a_document_without_a_seal_is_honoured():
    assert again(DONE.replace("Find a carrier", "Find two carriers")) == {}


def test_steps_may_be_added_behind_the_seal_and_the_seal_still_counts():
    text = sealed_text(DONE).replace("Pack the", "Pack all the")
    text += "\n- [ ] 7. Order flowers @buyer (after 9)\n"
    document = PlanDocument.recover(text)
    assert [step.id for step in document.plan.steps] == [1, 2, 3, 4, 5, 6, 7]
    assert [mistake.line for mistake in document.mistakes] == [text.count("\n")]
    assert again(text.replace(" (after 9)", "")) == {2: "edited", 4: "dependency"}


def test_a_removed_step_leaves_mistakes_or_edited_steps():
    written = sealed_text(DONE)
    start, end = written.index("- [-] 3."), written.index("- [x] 4.")
    without = written[:start] + written[end:]
    document = PlanDocument.recover(without)
    assert [mistake.code for mistake in document.mistakes] == ["unknown_dependency"]
    assert again(without.replace("(after 2, 3)", "(after 2)")) == {4: "edited"}


@pytest.mark.parametrize(
    "line",
    [
        "<!-- replan: 1=zz -->",
        "<!-- replan 1=00000000 -->",
        "  <!-- replan: 1=00000000 -->",
        "> <!-- replan: 1=00000000 -->",
        "<!-- replan: 1=00000000 --> and more",
        f"<!-- replan: {'9' * 30}=00000000 -->",
    ],
)
def test_what_only_looks_like_a_seal_is_text(line):
    text = f"- [x] 1. A\n\n{line}\n"
    assert again(text) == {}
    assert unsealed(text) == text


def test_a_seal_may_be_spaced_otherwise_and_name_steps_that_are_gone():
    text = "- [x] 1. A\n\n<!--replan:  9=00000000\t1=00000000   -->  "
    assert read_fingerprints(text) == {9: "00000000", 1: "00000000"}
    assert again(text) == {1: "edited"}
    assert unsealed(text) == "- [x] 1. A\n"


def test_of_two_seals_the_last_one_counts():
    plan = PlanDocument.parse("- [x] 1. A\n").plan
    text = sealed(plan).content
    assert again(f"<!-- replan: 1=00000000 -->\n{text}") == {}
    assert again(f"{text}<!-- replan: 1=00000000 -->\n") == {1: "edited"}


def test_what_runs_again_is_open_without_result_and_the_rest_is_byte_for_byte_as_it_was():
    text = sealed_text(DONE).replace("Pack the", "Pack all the")
    plan = PlanDocument.parse(text).plan
    fresh = reopened(plan, rerun_reasons(plan))
    assert fresh.content == (
        DONE.replace("[x] 2. Pack the", "[ ] 2. Pack all the")
        .replace("\n  > 38 boxes.\n", "")
        .replace("[x] 4.", "[ ] 4.")
        .replace("\n  > Open.\n", "")
    )
    assert [step.id for step in fresh.open_steps()] == [2, 4, 6]
    assert (fresh.step(2).result, fresh.step(1).result) == ("", "North, 1,200 EUR.")


def test_writing_a_changed_plan_leaves_the_seal_so_that_the_change_is_seen():
    document = PlanDocument.parse(sealed_text(DONE))
    step = document.plan.step(2)
    changed = document.write(document.plan.with_steps(step.replace(brief="Glass first.")))
    assert changed.text.endswith(document.text[len(DONE) :])
    assert again(changed.text) == {2: "edited", 4: "dependency"}


WORDS = st.text("ab \u00e9<@(", min_size=1, max_size=8)


SETTLED_PLANS = random_plans(
    st.fixed_dictionaries(
        {
            "description": WORDS,
            "brief": st.sampled_from(["", "Look.", "```\na  b\n```", "- depends on: 1"]),
            "parameters": st.sampled_from([{}, {"n": 1}, {"n": 1.0, "m": ["x"]}]),
            "status": st.sampled_from(StepStatus),
            "assigned_to": st.sampled_from(["", "a", "b"]),
            "result": st.sampled_from(["", "Text.", "> q"]),
        }
    ),
    ids=st.integers(1, 30),
    most=9,
).map(refresh_content)


@dataclass
class Edits:
    """Edits of a plan: the plan after them, and the steps that they touch."""

    plan: TaskPlan
    touched: set[int] = field(default_factory=set)


@st.composite
def edits(draw: st.DrawFn, plan: TaskPlan) -> Edits:
    """Change what steps are asked, or their marks, or what does not count."""
    made = Edits(plan)
    fresh = (f"word {number}" for number in count(1))
    for step in plan.steps:
        match draw(st.sampled_from(["keep", "keep", "cosmetic", "asked", "open", "result"])):
            case "asked":
                name = draw(st.sampled_from(["description", "brief", "parameters", "assigned_to"]))
                value = {"now": next(fresh)} if name == "parameters" else next(fresh)
                changed = step.replace(**{name: value})
                made.touched |= {step.id} if step.status in SETTLED else set()
            case "open":
                changed = step.replace(status=StepStatus.PENDING)
                made.touched |= {step.id} if step.status in SETTLED else set()
            case "cosmetic":
                changed = step.replace(priority=7, max_retries=1, timeout=3.0, optional=True)
            case "result":
                changed = step.replace(result=next(fresh))
            case _:
                continue
        made.plan = made.plan.with_steps(changed)
    return made


def reference_cone(plan: TaskPlan, touched: set[int]) -> set[int]:
    """What is touched and every settled step from which a way of waiting leads to it."""
    edges = {step.id: {*step.dependencies} for step in plan.steps}
    for step in plan.steps:
        if step.condition is not None:
            edges[step.id].add(step.condition.step)

    def leads(step_id: int) -> bool:
        return step_id in touched or any(map(leads, edges[step_id]))

    is_open = {step.id for step in plan.steps if step.status not in SETTLED}
    return {step_id for step_id in edges if leads(step_id) and step_id not in is_open - touched}


@given(st.data())
def test_exactly_the_cone_of_the_edits_runs_again(data: st.DataObject):
    plan = sealed(data.draw(SETTLED_PLANS))
    made = data.draw(edits(plan))
    handed = PlanDocument.parse(refresh_content(made.plan).content).plan
    reruns = rerun_reasons(handed)
    assert {each.step for each in reruns} == reference_cone(handed, made.touched)
    fresh = reopened(handed, reruns)
    again_ids = {each.step for each in reruns}
    for step in handed.steps:
        if step.id in again_ids:
            done = step.replace(status=StepStatus.PENDING, result="", feedback="")
            assert fresh.step(step.id) == done
        else:
            assert fresh.step(step.id) == step
    assert PlanDocument.parse(fresh.content).plan.steps == fresh.steps


@given(SETTLED_PLANS, st.sampled_from(["\n", "\r\n", "\r"]), st.sampled_from(["", "\n", "\n\n"]))
def test_sealing_touches_nothing_else_and_is_read_back(plan: TaskPlan, end: str, tail: str):
    text = (render(plan).rstrip("\n") + tail).replace("\n", end)
    plan = PlanDocument.parse(text).plan
    written = sealed(plan)
    assert unsealed(written.content) == text
    assert written.content.startswith(text)
    assert PlanDocument.parse(written.content).plan.steps == plan.steps
    assert sealed(written) == written
    assert rerun_reasons(PlanDocument.parse(written.content).plan) == ()
    settled = {step.id for step in plan.steps if step.status in SETTLED}
    assert set(read_fingerprints(written.content)) == settled


CUT = PlanDocument.parse(DONE.replace("38 boxes.", "38 boxes and…")).plan


def test_a_seal_names_the_run_that_has_what_the_document_cuts_off():
    plan = CUT
    written = sealed(plan, "5b0c-1.a:b_c")
    assert written.content.endswith(" run=5b0c-1.a:b_c -->\n")
    assert origin_of(written.content) == "5b0c-1.a:b_c"
    assert unsealed(written.content) == plan.content
    assert read_fingerprints(written.content) == read_fingerprints(sealed(plan).content)
    assert sealed(written) == written
    assert origin_of(sealed(written, "other").content) == "other"
    assert origin_of(written.content + sealed(plan).content) == ""


@pytest.mark.parametrize("run_id", ["two words", "a--b", "-", "a>", "ä", "a\n", "a-"])
def test_a_run_whose_name_would_break_the_comment_is_not_named(run_id):
    assert sealed(CUT, run_id) == sealed(CUT)


def test_a_step_that_is_opened_takes_with_it_what_was_settled_after_it():
    plan = PlanDocument.parse(
        "- [x] 1. A @a\n- [!] 2. B @a (after 1)\n- [x] 3. C @a (if 2 failed)\n"
        "- [ ] 4. D @a (after 2)\n- [x] 5. E @a\n"
    ).plan
    assert [str(each) for each in rerun_from(plan, 2)] == ["2 (reopened)", "3 (after 2)"]
    assert [each.step for each in rerun_from(plan, 1)] == [1, 2, 3]
    assert [each.step for each in rerun_from(plan, 5)] == [5]


def test_a_document_names_its_run_where_it_is_to():
    plan = PlanDocument.parse("- [x] 1. A @a\n").plan
    assert origin_of(sealed(plan, "r1").content) == ""
    assert origin_of(sealed(plan, "r1", is_named=True).content) == "r1"
