"""What a plan document refuses, recovers and keeps when a plan is written into it."""

import sys
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from time import process_time
from types import FrameType
from typing import Any

import pytest

from cases import read_page
from replan.errors import PlanDocumentError
from replan.plan import (
    Condition,
    PlanDocument,
    PlanStep,
    StepStatus,
    TaskPlan,
    apply,
    compare,
    looks_like_plan,
    normalised,
    parse_plan_from_markdown,
    render,
    render_for_model,
    with_statuses,
)

NOON = datetime(2026, 8, 1, 12, tzinfo=UTC)
CASES = read_page(Path(__file__).with_name("mistakes.yaml"))

EXAMPLE = """\
# Compare the EU's and the US's EV policy

<!-- Ask Ann before you send it. -->

- [x] 1. Find the EU's current EV policy @researcher
- [~] 2. Find the US's current EV policy @researcher
- [ ] 3. Compare subsidies, tariffs and charging @analyst (after 1, 2; priority 2; retries 1)

  Free text under a step is its brief. A fenced `yaml` block holds parameters.

- [ ] 4. Write a one-page brief @writer (after 3)

## Notes

Nothing yet.
"""


Edit = Callable[[TaskPlan], TaskPlan]


def codes(text: str) -> list[tuple[int, int, str]]:
    return [
        (mistake.line, mistake.column, mistake.code)
        for mistake in PlanDocument.recover(text).mistakes
    ]


def written(text: str, *steps: PlanStep) -> str:
    document = PlanDocument.parse(text)
    return str(document.write(document.plan.with_steps(*steps)))


def test_a_mistake_has_a_place_and_a_code() -> None:
    cases = [case for each in CASES["mistakes"] for case in each.items()]
    cases += [line.split(" | ", 1) for line in CASES["mistakes_in_a_line"].splitlines()]
    for expected, text in cases:
        (mistake,) = PlanDocument.recover(text).mistakes
        assert f"{mistake.line}:{mistake.column} {mistake.code}" == expected, text
    # No file can hold it.
    assert codes("- [ ] 1. a\ud800\n") == [(1, 11, "bad_character")]


def test_the_message_has_the_first_mistakes_of_very_many_and_the_error_has_all() -> None:
    with pytest.raises(PlanDocumentError) as caught:
        PlanDocument.parse("- [ ] 1. Sum @a (" + "[1,}" * 300 + ")")

    assert len(caught.value.mistakes) > 100
    assert str(caught.value).count("\n") == 21
    assert str(caught.value).endswith(f"  and {len(caught.value.mistakes) - 20} more")


def test_recovering_mends_the_plan_and_leaves_the_text() -> None:
    text = "- [ ] 1. a (after 2, 9)\n- [?] 2. b (after 1; blue)\n- [ ] 2. c (after 2)\n"
    document = PlanDocument.recover(text)
    assert str(document) == text
    steps = [(step.id, step.dependencies) for step in document.plan.steps]
    assert steps == [(1, (2,)), (2, ()), (3, (2,))]


def test_a_revision_may_wait_for_steps_that_it_leaves_out() -> None:
    text = "- [ ] 5. Write it (after 1, 2)\n- [ ] Send it (after 5)\n"
    plan = PlanDocument.parse(text, known={1, 2, 3}).plan
    assert [(step.id, step.dependencies) for step in plan.steps] == [(5, (1, 2)), (4, (5,))]
    with pytest.raises(PlanDocumentError):
        PlanDocument.parse(text)


def changing(step_id: int, **fields: Any) -> Edit:
    return lambda plan: plan.with_steps(plan.step(step_id).replace(**fields))


def with_title(title: str) -> Edit:
    return lambda plan: plan.replace(title=title)


def with_step(step: PlanStep, at: int) -> Edit:
    return lambda plan: plan.replace(steps=(*plan.steps[:at], step, *plan.steps[at:]))


def turned_round(plan: TaskPlan) -> TaskPlan:
    return plan.replace(steps=plan.steps[::-1])


NUMBERED = "Steps:\n\n1. Find it @a\n2) Compare it\n\nThat is all.\n"
FENCED = "\n```markdown\n- [{}] 1. a\n{}```\n\n"
WIDE = "- [ ] 1. Do  it @a\n\n  Brief.\n- [x] 2. Rest\n"
WINDOWS = "# T\r\n\r\n* [x] 1. a\r\n{}* [ ] 2. b\r\n\r\nEnd.\r\n"
NEW = PlanStep(id=7, description="c", dependencies=(1,), brief="Look.")
UNTITLED = EXAMPLE.partition("\n\n")[2]
BARE = "# Only a title\n\nSome prose.\n"
EDITS: dict[str, tuple[str, Edit, str]] = {
    "a mark": (EXAMPLE, changing(2, status="completed"), EXAMPLE.replace("[~]", "[x]")),
    "executing, shown": (EXAMPLE, changing(2, status="pending"), EXAMPLE),
    "executing, as before": (EXAMPLE, changing(2, status="executing"), EXAMPLE),
    "executing": (EXAMPLE, changing(4, status="executing"), EXAMPLE.replace("[ ] 4", "[~] 4")),
    "options and names": (
        EXAMPLE,
        changing(4, priority=3, assigned_to="editor"),
        EXAMPLE.replace("@writer (after 3)", "@editor (after 3; priority 3)"),
    ),
    "what it writes": (WIDE, changing(1, writes=("a.md",)), WIDE.replace("@a", "@a (writes a.md)")),
    "nothing, without boxes": (NUMBERED, changing(1), NUMBERED),
    "a mark, without boxes": (
        NUMBERED,
        changing(1, status="completed"),
        NUMBERED.replace("1. ", "1. [x] ").replace("2) ", "2) [ ] "),
    ),
    "in a fence around the whole": (
        FENCED.format(" ", ""),
        changing(1, status="completed", result="Done."),
        FENCED.format("x", "\n  > Done.\n"),
    ),
    "a new step": (
        WINDOWS.format(""),
        with_step(NEW, 1),
        WINDOWS.format("\r\n* [ ] 7. c (after 1)\r\n\r\n  Look.\r\n\r\n"),
    ),
    "the first step": (
        BARE,
        with_step(PlanStep(id=1, description="Begin"), 0),
        f"{BARE}\n- [ ] 1. Begin\n",
    ),
    "the order": (
        "- [ ] 1. a\n\n  Brief.\n\n<!-- here -->\n\n- [ ] 2. b\n",
        turned_round,
        "- [ ] 2. b\n\n<!-- here -->\n\n- [ ] 1. a\n\n  Brief.\n",
    ),
    "the order, without numbers": (
        "Hello.\n\n- [ ] a\n- [x] b\n\nThat is all.\n",
        turned_round,
        "Hello.\n\n- [x] 2. b\n- [ ] 1. a\n\nThat is all.\n",
    ),
    "a new step, without numbers": (
        "- [ ] a\n- [x] b\n",
        with_step(PlanStep(id=3, description="c"), 2),
        "- [ ] a\n- [x] b\n- [ ] 3. c\n",
    ),
    "another title": (EXAMPLE, with_title("EV #"), f"# EV &#35;\n\n{UNTITLED}"),
    "no title": (EXAMPLE, with_title(""), UNTITLED),
    "a title": (UNTITLED, with_title("EV"), f"# EV\n\n{UNTITLED}"),
    "mistakes": (
        "Hello.\n\n- [ ] 1. a\n- [?] 2. b (after 1, 9; blue)\n",
        changing(1),
        "Hello.\n\n- [ ] 1. a\n- [ ] 2. b (after 1)\n",
    ),
}


@pytest.mark.parametrize(("text", "edit", "after"), EDITS.values(), ids=EDITS)
def test_writing_changes_what_must_change(text: str, edit: Edit, after: str) -> None:
    document = PlanDocument.recover(text)
    assert str(document.write(edit(document.plan))) == after


def test_a_result_stands_under_its_step() -> None:
    plan = parse_plan_from_markdown(EXAMPLE)
    step = plan.step(3).replace(
        status=StepStatus.FAILED, result="Half.\n\n> x", feedback="No data."
    )
    after = written(EXAMPLE, step)
    lines = (
        "block holds parameters.\n\n  > Half.\n  >\n  > > x\n\n  > **Failed:** No data.\n\n- [ ] 4."
    )
    assert lines in after
    assert written(after, plan.step(3)) == EXAMPLE


def test_a_fence_in_a_step_does_not_end_the_one_around_the_plan() -> None:
    text = "Here:\n\n```markdown\n- [ ] 1. a\n  ```yaml\n  x: 1\n  ```\n- [ ] 2. b\n```\n"
    assert codes(text) == [(1, 1, "no_steps")]


def test_text_that_would_be_misread_is_written_so_that_it_is_not() -> None:
    step = PlanStep(
        id=1,
        description="Tell @bob (after 1)\nand Ann",
        brief="- depends on: 9\n\n> quoted\n\n```yaml\na: 1\n```",
        result="**Failed:** is a word",
        joined_by=("b",),
        assigned_to="Data Analyst",
    )
    text = render(TaskPlan(steps=(step,)))
    assert PlanDocument.parse(text).plan.steps == (step,)
    assert len([line for line in text.splitlines() if line.startswith("- [")]) == 1


@pytest.mark.parametrize(
    "names",
    [
        ("optional", "after2", "priority=2", "if2failed", "none", "-"),
        ("a", "optional", "after2", "timeout5s", "assigned:bob", "and", "y"),
        ("a b", "a;b", "(a)", "[a]", "@a", "'a'", '"a', "`a`", "a,b", " a ", "&#64;", "a\nb"),
        ("研究.md", "a、b", "..", "*", "x" * 300, "\U0010ffff"),
    ],
)
def test_what_a_step_writes_reads_back_whatever_its_name(names: tuple[str, ...]) -> None:
    step = PlanStep(id=1, description="Do it", assigned_to="a", writes=names)
    assert PlanDocument.parse(render(TaskPlan(steps=(step,)))).plan.steps == (step,)


def test_another_thing_to_write_is_a_change_of_the_plan() -> None:
    plan = parse_plan_from_markdown(WIDE)
    changes = compare(plan, changing(1, writes=("a.md",))(plan))
    assert changes.record == {"modified": {"1": {"writes": ["a.md"]}}}
    assert apply(plan, changes, at=NOON).step(1).writes == ("a.md",)


def test_what_a_document_cannot_hold_is_normalised_up_front() -> None:
    step = PlanStep(
        id=3,
        description="",
        brief="a\r\nb",
        joined_by=("a", "", "a"),
        dependencies=(1, 1),
        timeout=float("inf"),
        writes=("a.md", "", "a.md"),
        parameters={"x": float("nan")},
    )
    plan = TaskPlan(steps=(PlanStep(id=1, description="a"), step))
    expected = PlanStep(
        id=3,
        description="Step 3",
        brief="a\nb",
        assigned_to="a",
        dependencies=(1,),
        writes=("a.md",),
        parameters={"x": None},
    )
    assert normalised(plan).step(3) == expected
    assert PlanDocument.parse(render(plan)).plan.step(3) == expected


def test_a_prompt_gets_the_plan_without_results() -> None:
    plan = parse_plan_from_markdown(EXAMPLE)
    plan = with_statuses(
        plan,
        [
            plan.step(1).replace(result="Long."),
            plan.step(2).replace(status=StepStatus.FAILED, feedback="Down."),
        ],
        NOON,
    )
    text = render_for_model(plan)
    assert "> **Failed:** Down." in text
    assert "Long." not in text
    assert "Ask Ann" not in text


def test_two_readers_of_one_text_do_not_share_parameters() -> None:
    text = "- [ ] 1. a\n  ```yaml\n  tags: [x]\n  ```\n"
    parse_plan_from_markdown(text).step(1).parameters["tags"] = "spoilt"
    assert parse_plan_from_markdown(text).step(1).parameters == {"tags": ["x"]}


def test_a_plan_that_no_document_can_hold_is_still_written_somehow() -> None:
    cyclic = TaskPlan(
        steps=(
            PlanStep(id=1, description="a", dependencies=(2,)),
            PlanStep(id=2, description="b", condition=Condition(step=1, outcome="failed")),
        )
    )
    assert render(cyclic) == "- [ ] 1. a (after 2)\n- [ ] 2. b (if 1 failed)\n"
    document = PlanDocument.parse(EXAMPLE).write(cyclic)
    assert [mistake.code for mistake in document.mistakes] == ["cycle"]


@pytest.mark.parametrize(
    "text",
    [
        EXAMPLE,
        "- [ ] Find it\n- [ ] Compare it\n",
        "```markdown\n- [ ] 1. Find it @a\n```\n",
        "1. Find it @a\n2. Compare it\n",
        "1. Find it\n2. Compare it (after 1)\n",
        "Here is the plan:\n\n1. [ ] 查找 @研究员\n2. [ ] 比较（依赖：1）\n",
    ],
)
def test_strong_evidence_makes_a_plan(text: str) -> None:
    assert looks_like_plan(text)


def test_an_ordinary_answer_is_no_plan() -> None:
    assert [text for text in CASES["no_plans"] if looks_like_plan(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        "- [ ] 1. a\n  ```yaml\n  a: &a [*a]\n  ```\n",
        "- [ ] 1. a\n  ```yaml\n  a: " + "[" * 3000 + "\n  ```\n",
        "- [ ] 1. a\n  ```yaml\n  a: 2024-13-45\n  b: " + "9" * 5000 + "\n  ```\n",
        "- [ ] 1. a\n  ```yaml\n  ? [a, b]\n  : !!binary eA==\n  ```\n",
        "- [ ] 1. a (after " + "9" * 5000 + ")\n",
        "- [ ] 1. a (after 1-99999999)\n",
        "- [ ] " + "9" * 5000 + ". a\n",
        "- [ ] 1. a " + "@b " * 3000 + "x\n",
        "- [ ] 1. a" + " " * 50_000 + "b\n",
        "- [ ] 1. " + "(" * 3000 + ")" * 3000 + "\n",
        "> " * 2000 + "- [ ] 1. a\n",
        "  - " * 500 + "[ ] 1. a\n",
        "- [ ] 1. a\n" + "".join(f"{'  ' * at}- b\n" for at in range(1, 300)),
        "*" * 5000 + "1. a\n",
        "\x00\ufeff\u2028\x85",
    ],
)
def test_hostile_documents_are_read_quickly(text: str) -> None:
    start = process_time()
    document = PlanDocument.recover(text)
    document.write(document.plan)
    assert process_time() - start < 8


def test_an_exploding_alias_is_a_mistake() -> None:
    rows = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    rows += [f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 10)}]" for at in range(1, 10)]
    block = "".join(f"  {row}\n" for row in rows)
    assert codes(f"- [ ] 1. a\n  ```yaml\n{block}  ```\n") == [(7, 3, "bad_parameters")]


def test_a_thousand_steps_are_read_and_written_in_a_moment() -> None:
    text = "# T\n\n" + "".join(
        f"- [ ] {at}. Do the thing number {at} @a (after {at - 1}; retries 1)\n\n  A brief.\n\n"
        for at in range(2, 1002)
    ).replace("(after 1;", "(")
    start = process_time()
    document = PlanDocument.parse(text)
    plan = document.plan
    half = [step.replace(status=StepStatus.COMPLETED, result="ok") for step in plan.steps[:500]]
    after = document.write(plan.with_steps(*half))
    # Each takes about 0.2 s on a slow machine; the bound is for one that is busy besides.
    assert process_time() - start < 8
    assert len(after.plan.completed_steps) == 500


def test_a_line_of_a_step_that_is_too_long_is_a_mistake_and_its_end_is_read() -> None:
    text = f"- [ ] 1. Find @a\n- [ ] 2. {'word ' * 3_000}@b (after 1)\n"
    with pytest.raises(PlanDocumentError) as caught:
        PlanDocument.parse(text)
    assert [(each.line, each.code) for each in caught.value.mistakes] == [(2, "too_large")]
    found = PlanDocument.recover(text).plan.step(2)
    assert (found.assigned_to, found.dependencies) == ("b", (1,))


def test_a_mark_and_a_result_read_only_their_step_again() -> None:
    plan = parse_plan_from_markdown(EXAMPLE)
    entered = Counter[str]()

    def enter(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            entered[frame.f_code.co_name] += 1

    sys.setprofile(enter)
    try:
        plan = with_statuses(plan, [plan.step(3).replace(status="completed", result="x")], NOON)
        again = with_statuses(plan, [plan.step(4).replace(status="failed", feedback="y")], NOON)
    finally:
        sys.setprofile(None)
    assert again.content.count("  > ") == 2
    assert entered["read_title"] == 2
