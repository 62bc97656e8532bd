"""Laws of the plan document, over arbitrary plans, noisy documents and arbitrary text."""

import pytest
from hypothesis import example, given, strategies as st
from pydantic import JsonValue

from random_plans import random_plans
from replan.base.texts.storable import storable_text
from replan.errors import PlanDocumentError
from replan.plan import (
    PlanDocument,
    PlanStep,
    StepStatus,
    TaskPlan,
    looks_like_plan,
    normalised,
    render,
)
from replan.plan.markdown.rendering import visible_parts
from replan.plan.order import closing_edges

# Everything that means something in a plan or in Markdown, to be misread if anything can be.
SPICE = (
    *("@x", "(after 1)", "(optional)", "（依赖：1）", "after step 1", "depends on 2", "依赖 1"),
    *("**", "__b__", "*", "_", "`", "```", "~~~", "[ ]", "[x] ", "(", ")", "@", "&", "&#64;", "\\"),
    *("1. ", "10) ", "Step 2: ", "- ", "* ", "- [ ] 2. x", "> q", "# ", "---", "===", "|"),
    *("```yaml\na: 1\n```", "```markdown", "```brief", "<!--", "-->", "<div>", "[a]: http://b"),
    *("priority: 2", "- depends on: 1", "Agent: bob", "**Failed:** x", "**Result:** y"),
    *("\n", "\n\n", "  ", "    ", "\t", "\r\n", "\r", "\u2028", "\x0b", "\x00", "\ufeff"),
    *("é", "研", ".", "word", "some text ", "foo."),
)
TEXTS = st.lists(st.sampled_from(SPICE) | st.text(max_size=4), max_size=6).map("".join)
# Parameters are values that every store keeps, so they have no NUL.
KEPT = TEXTS.map(storable_text)
NAMES = st.sampled_from(
    ["a", "researcher", "data-analyst", "研究员", "a.b", "A B", "_x", "x_", ".", "@q", "a@b"]
) | st.text(min_size=1, max_size=4)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | KEPT
)
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEPT, inner, max_size=3),
    max_leaves=4,
)


SOME_TEXT = st.just("") | TEXTS
# What does not depend on the other steps is drawn at once, by a strategy that is made once.
ALONE = st.fixed_dictionaries(
    {
        "description": TEXTS,
        "brief": SOME_TEXT,
        "parameters": st.just({}) | st.dictionaries(KEPT, VALUES, max_size=3),
        "status": st.sampled_from(StepStatus),
        "result": SOME_TEXT,
        "feedback": SOME_TEXT,
        "priority": st.just(0) | st.integers(-(10**17) + 1, 10**17 - 1),
        "optional": st.booleans(),
        "max_retries": st.none() | st.integers(0, 10**6),
        "timeout": st.none() | st.floats(min_value=0, exclude_min=True),
        "estimated_duration": st.none() | st.floats(min_value=0, exclude_min=True),
        "writes": st.just(()) | st.lists(NAMES | TEXTS, max_size=3).map(tuple),
    }
)
PEOPLE = st.lists(NAMES, max_size=3).map(
    lambda names: {"assigned_to": "".join(names[:1]), "joined_by": tuple(names[1:])}
)


def plans() -> st.SearchStrategy[TaskPlan]:
    alone = st.builds(lambda step, names: step | names, ALONE, PEOPLE)
    ids = st.integers(1, 12) | st.integers(1, 10**12)
    return random_plans(alone, ids=ids, most=4, titles=SOME_TEXT)


LINES = st.sampled_from(
    [
        *("- [ ] 1. a @b", "- [x] 2. y (after 1)", "- [?] x", "* [x] 3. c (after 1)", "- [ ] d"),
        *("1. a", "1. b", "2) d (after 4, 5)", "10. x @a", "- x", "  - y", "\t- z", "    code"),
        *("### Step 1: a", "Step 2: b", "**Step 3:** c", "# T", "## Phase", "T", "====", "---"),
        *("```", "```markdown", "  ```yaml", "  a: [1", "  ```", "  > q", "  > **Failed:** no"),
        *("  brief", "  priority: 2", "  - depends on: 1", "<!--", "-->", "> - [ ] q", "text", ""),
    ]
)
ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r"])
DOCUMENTS = st.lists(st.tuples(LINES, ENDS).map("".join), max_size=12).map("".join)

NOISE = st.sampled_from(
    ["", "", "Some prose.", "<!-- a comment\n- [ ] 9. hidden\n-->", "## Phase", "***", "> a quote"]
)


@st.composite
def noisy_documents(draw: st.DrawFn) -> tuple[str, str, list[str]]:
    """A valid document with noise around its steps: its text, its line end, its steps' lines."""
    end = draw(st.sampled_from(["\n", "\r\n"]))
    bullet = draw(st.sampled_from(["-", "*", "+"]))
    count = draw(st.integers(1, 5))
    blocks: list[str] = []
    for number in range(1, count + 1):
        mark = draw(st.sampled_from(" ~xX!-"))
        tail = draw(st.sampled_from(["", " @a", "  @a @b ", " (optional)", " (after: 1)"]))
        under = draw(
            st.sampled_from(
                ["", "\n  brief", "\n\n  a\n\n  - [ ] b", "\n  - priority: 3", "\n\n  > result"]
            )
        )
        tail = "" if number == 1 and "after" in tail else tail
        blocks.append(f"{bullet} [{mark}]  {number}. Do **this**{tail}{under}".replace("\n", end))
    text = draw(st.sampled_from(["", "\ufeff", "# Title\n\n", "Title\n=====\n", "Prose.\n\n"]))
    text = text.replace("\n", end)
    for block in blocks:
        noise = draw(NOISE).replace("\n", end)
        text += block + end + (f"{end}{noise}{end}{end}" if noise else "")
    return text if draw(st.booleans()) else text.rstrip("\r\n"), end, blocks


@st.composite
def damaged_documents(draw: st.DrawFn) -> str:
    text = draw(noisy_documents())[0]
    at = draw(st.integers(0, len(text)))
    return text[:at] + draw(TEXTS) + text[at + draw(st.integers(0, 8)) :]


def shown(plan: TaskPlan) -> tuple[object, ...]:
    """What a document shows of a plan."""
    plan = normalised(plan)
    return plan.title, [visible_parts(step) for step in plan.steps]


@given(plans())
@example(TaskPlan(steps=(PlanStep(id=1, description="a", writes=(":0", "=")),)))
def test_a_rendered_plan_reads_back_the_same(plan: TaskPlan) -> None:
    text = render(plan)
    document = PlanDocument.parse(text)
    assert shown(document.plan) == shown(plan)
    assert document.plan.content == str(document) == text
    assert str(document.write(document.plan)) == text
    once = normalised(plan)
    assert normalised(once) is once


@given(plans(), plans(), st.sampled_from(["\n", "\r\n", "\r"]), st.sampled_from(["", "\ufeff"]))
def test_any_plan_can_be_written_into_any_document(
    old: TaskPlan, new: TaskPlan, end: str, mark: str
) -> None:
    text = mark + render(old).replace("\n", end)
    written = PlanDocument.parse(text).write(new)
    assert shown(PlanDocument.parse(str(written)).plan) == shown(new)


@given(DOCUMENTS | st.text() | TEXTS)
def test_recovering_never_fails_and_gives_a_sound_plan(text: str) -> None:
    document = PlanDocument.recover(text)
    plan = document.plan
    ids = [step.id for step in plan.steps]
    assert str(document) == text == plan.content
    assert len(ids) == len(set(ids))
    assert all(other in ids for step in plan.steps for other in step.awaits)
    assert not closing_edges(plan.steps)
    assert isinstance(looks_like_plan(text), bool)
    assert document.mistakes or plan.steps


@given(DOCUMENTS)
def test_parsing_tells_what_recovering_mends(text: str) -> None:
    recovered = PlanDocument.recover(text)
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if recovered.mistakes:
        with pytest.raises(PlanDocumentError) as caught:
            PlanDocument.parse(text)
        assert caught.value.mistakes == recovered.mistakes
        places = [(mistake.line, mistake.column) for mistake in recovered.mistakes]
        assert places == sorted(places)
        assert all(1 <= line <= len(lines) for line, _ in places)
        assert all(1 <= column <= len(lines[line - 1]) + 1 for line, column in places)
    else:
        assert PlanDocument.parse(text) == recovered
        assert str(recovered.write(recovered.plan)) == text


@given(DOCUMENTS | damaged_documents(), st.data())
def test_whatever_was_read_can_be_changed_and_written(text: str, data: st.DataObject) -> None:
    document = PlanDocument.recover(text)
    plan = document.plan
    assert shown(document.write(plan).plan) == shown(plan)
    if plan.steps:
        step = data.draw(st.sampled_from(plan.steps))
        status = data.draw(st.sampled_from(StepStatus))
        plan = plan.with_steps(step.replace(status=status, result=data.draw(TEXTS)))
        plan = plan.replace(steps=tuple(data.draw(st.permutations(plan.steps))))
    written = document.write(plan)
    assert shown(written.plan) == shown(plan)
    assert not written.mistakes or not plan.steps


@given(noisy_documents(), st.data())
def test_writing_a_step_leaves_all_other_lines_alone(
    noisy: tuple[str, str, list[str]], data: st.DataObject
) -> None:
    text, end, blocks = noisy
    document = PlanDocument.parse(text)
    assert len(document.plan.steps) == len(blocks)
    assert str(document) == str(document.write(document.plan)) == text
    at = data.draw(st.integers(0, len(blocks) - 1))
    step = document.plan.steps[at]
    changes = st.fixed_dictionaries(
        {},
        optional={
            "status": st.sampled_from(StepStatus),
            "description": TEXTS.filter(bool),
            "brief": TEXTS.map(lambda brief: brief.replace("\r", "")),
            "priority": st.integers(0, 3),
            "result": TEXTS.map(lambda result: result.replace("\r", "")),
        },
    )
    changed = step.replace(**data.draw(changes))
    written = str(document.write(document.plan.with_steps(changed)))
    before, after = text.split(blocks[at])
    assert written.startswith(before)
    assert written.endswith(after) or written.removesuffix(end).endswith(after.removesuffix(end))
    assert shown(PlanDocument.parse(written).plan) == shown(document.plan.with_steps(changed))
