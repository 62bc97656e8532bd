"""What models were seen to write around the grammar of plans, and what it means."""

# ruff: noqa: ISC004, RUF001, RUF005
# The replies stand as they were written, in the scripts that they were written in.

import pytest

from replan.plan import PlanDocument, PlanStep
from replan.replies.readings import read_answer, read_feedback, read_plan, read_think
from replan.replies.specialist_reading import read_specialist
from replan.replies.unreadable import Complaint
from replan.replies.vocabulary.naming import Names
from replan.replies.written_plans.finding import find_plan, problems_of

TEAM = ("researcher", "coder", "data_analyst", "writer")
HEAD = "---\ncomplexity: complex\n---\n"
ONE = "- [ ] 1. Find A @researcher\n"
TWO = "- [ ] 2. Find B @coder\n"


def steps(body: str) -> tuple[PlanStep, ...]:
    reading = read_think(HEAD + body, TEAM)
    assert not isinstance(reading, Complaint), reading.problem
    assert problems_of(reading.body, Names(TEAM)) == ()
    return PlanDocument.parse(reading.body).plan.steps


def told(body: str) -> str:
    """What is said to the model of a plan that was not wholly understood."""
    plan = find_plan(body, TEAM, expected=True)
    assert plan is not None
    return "\n".join(problem.code for problem in plan.problems)


@pytest.mark.parametrize(
    "tail",
    [
        "@writer (after 1, 2): make a table",
        "@writer, after 1, 2",
        "@writer [deps: 1, 2]",
        "@writer {after: 1, 2}",
        "@writer *(after 1, 2)*",
        "@writer `(after 1 and 2)`",
        "@writer **(after 1, 2)**;",
        "@writer (after 1, 2) ✅",
        "@writer (after 1, 2) <!-- note -->",
        "<!-- note --> @writer (after 1, 2)",
        "@writer ← 1, 2",
        "@writer - after 1, 2",
        "@writer (uses the results of steps 1 and 2)",
        "@writer (once 1 and 2 are done)",
        "@writer (after all previous steps)",
        '@writer (after "Find A", "Find B")',
        "(writer, after 1, 2)",
        "[agent: writer, depends on: 1, 2]",
        "(writer | deps: 1, 2)",
        "(assigned to the writer) (after 1-2)",
        "— Writer (after 1..2)",
        "by the writer, depends on steps 1 and 2",
        "@writer (在步骤1、2之后)",
        "@writer (1, 2の後)",
        "@writer (1, 2단계 이후)",
        "@writer (после шагов 1 и 2)",
        "@writer (بعد الخطوات 1 و 2)",
        "@writer (after 1, 2) (500 words)",
    ],
)
def test_names_and_order_are_read_wherever_they_stand_in_a_line(tail: str) -> None:
    step = steps(f"{ONE}{TWO}- [ ] 3. Compare {tail}")[2]
    assert (step.assigned_to, step.dependencies) == ("writer", (1, 2))
    assert step.description.startswith("Compare")


@pytest.mark.parametrize(
    "begin",
    ["(1)|(2)", "①|②", "一、|二、", "第一步：|第二步：", "A.|B.", "I.|II.", "T1:|T2:", "1.1|1.2"]
    + ["• 1.|• 2.", "☐ 1.|☐ 2.", "[ ] 1.|[ ] 2.", "**1.|**2.", "## 1.|## 2.", "0.|1.", "1.|1."]
    + ["Step 1:|Step 2:", "1단계:|2단계:", "Étape 1 -|Étape 2 -", "#1|#2", "1️⃣|2️⃣", "✅ 1.|✅ 2."],
)
def test_a_plan_may_begin_its_lines_in_any_way(begin: str) -> None:
    first, second = begin.split("|")
    found = steps(f"{first} Find A @researcher\n{second} Find B @coder\n")
    assert [step.description for step in found] == ["Find A", "Find B"]
    assert [step.assigned_to for step in found] == ["researcher", "coder"]


@pytest.mark.parametrize("begin", ["{}、", "第{}步：", "（{}）"])
@pytest.mark.parametrize("order", ["（在第十一步之后）", "（依赖 十、十一）", "(after 11)"])
def test_steps_are_called_by_chinese_numerals_or_digits(begin: str, order: str) -> None:
    numerals = ["一", "二", "三", "四", "五", "六", "七", "八", "九", "十", "十一"]
    lines = [f"{begin.format(each)}收集数据{each} @researcher\n" for each in numerals]
    *_, last = steps(f"{''.join(lines)}{begin.format('十二')}编写报告{order} @writer\n")
    assert last.description == "编写报告"
    assert last.dependencies == ((10, 11) if "、" in order else (11,))


@pytest.mark.parametrize("remark", ["（一）", "（第一部分）", "（一个月之后）", "（二选一）"])
def test_a_chinese_numeral_of_something_else_is_no_order(remark: str) -> None:
    found = steps(f"1. 收集数据 @researcher\n2. 编写报告{remark} @writer\n")[1]
    assert (found.description, found.dependencies) == (f"编写报告{remark}", ())


@pytest.mark.parametrize(
    "body",
    [
        "- id: 1\n  task: 'Find A'\n  agent: researcher\n"
        "- id: 2\n  task: Compare: cost\n  agent: '@coder'\n  depends_on: [1]",
        "steps:\n  1:\n    task: Find A\n    agent: researcher\n"
        "  2:\n    task: 'Compare: cost'\n    agent: coder\n    after: 1",
        "| # | Task | Who | Depends on |\n|--|--|--|--|\n"
        "| 1 | Find A | researcher | - |\n| 2 | Compare: cost | @coder | 1 |",
        "<plan><step id='1' agent='researcher'>Find A</step>"
        "<step id='2'><task>Compare: cost</task><agent>coder</agent><after>1</after></step></plan>",
        '[{"id": "a", "step": "Find A", "owner": "Researcher"},'
        ' {"id": "b", "step": "Compare: cost", "owner": ["coder"], "deps": [{"id": "a"}]}]',
        "Step: 1\nTask: Find A\nAgent: researcher\n\n"
        "Step: 2\nTask: Compare: cost\nAgent: coder\nDepends on: 1",
    ],
)
def test_a_plan_may_come_as_data(body: str) -> None:
    first, second = steps(body)
    assert (first.description, first.assigned_to) == ("Find A", "researcher")
    assert (second.description, second.assigned_to) == ("Compare: cost", "coder")
    assert second.dependencies == (first.id,)


@pytest.mark.parametrize(
    "body",
    [
        f"{ONE}{TWO}\n## Final plan\n\n{ONE}{TWO}",
        f"## Draft\n\n1. Find A\n2. Find B\n\n## Plan\n\n{ONE}{TWO}",
        f"{ONE}{TWO}\n## Success criteria\n\n- [ ] The report is complete\n- [ ] It has sources\n",
        "1. Find A @researcher 2. Find B @coder",
        "### Step 1: Find A @researcher\n\n- [ ] query\n\n### Step 2: Find B @coder\n\n- [ ] ask\n",
        f"> {ONE}> {TWO}",
        "".join(f"    {line}" for line in (ONE, TWO)),
        f"{ONE}{TWO}\n<think>\n- [ ] 3. Hm @coder\n</think>",
        f"{ONE}{TWO}<|im_end|>\n<|im_start|>user\nThanks",
    ],
)
def test_what_stands_around_a_plan_is_none_of_its_steps(body: str) -> None:
    assert [step.description for step in steps(body)] == ["Find A", "Find B"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (ONE + "- [ ] 2. Find B @coder (aftr 1)", "unknown_attribute"),
        (ONE + "- [ ] 2. Find B @coder (after T7)", "unknown_attribute"),
        (ONE + "- [ ] 2. Find B @coder (after", "cut_off"),
        (ONE + "- [ ] 2. Find B @coder (after 1, the draft)", "unknown_attribute"),
        ("- [ ] 1. ... @name", "looks_like_data"),
    ],
)
def test_what_is_not_understood_is_told_and_never_dropped(body: str, code: str) -> None:
    assert code in told(body)


def test_a_plan_document_stays_as_it_was_written() -> None:
    text = f"# Two\n\nThe board meets on Monday.\n\n{ONE}\n  Mind the tax.\n\n{TWO}\n\nThanks!"
    assert read_plan(text, TEAM).text == text


def test_a_plan_below_simple_is_asked_about_or_believed_with_its_action() -> None:
    plan = f"{ONE}{TWO}"
    asked = read_think(f"---\ncomplexity: simple\n---\n{plan}", TEAM)
    assert isinstance(asked, Complaint)
    assert asked.reading is not None
    assert asked.reading.body == plan.strip()
    reading = read_think(f"---\ncomplexity: simple\nnext_action: create_plan\n---\n{plan}", TEAM)
    assert not isinstance(reading, Complaint)
    assert reading.body == plan.strip()


@pytest.mark.parametrize(
    "label", ["simple, moderate or complex", "simple | complex", "simple → complex"]
)
def test_an_echo_of_the_labels_is_no_label_and_its_text_no_answer(label: str) -> None:
    asked = read_think(f"---\ncomplexity: {label}\n---\nYou host a team.", TEAM)
    assert isinstance(asked, Complaint)
    assert asked.reading is None


def test_the_form_of_the_prompt_before_the_reply_is_passed_over() -> None:
    form = "---\ncomplexity: simple, moderate or complex\nscore: 0.0 to 1.0\n---\n"
    reading = read_think(f"{form}\n{HEAD}{ONE}", TEAM)
    assert not isinstance(reading, Complaint)
    assert (reading.complexity, reading.body) == ("complex", ONE.strip())


@pytest.mark.parametrize(
    "text",
    [
        "Lima.</s>",
        "Lima.<|im_end|>\n<|im_start|>user\nthanks",
        "Lima.\n\n<think>hm</think>",
        "<analysis>hm</analysis>\nLima.",
        "<|begin_of_thought|>hm<|end_of_thought|>\nLima.",
        "```thinking\nhm\n```\nLima.",
        "[THOUGHT]hm[/THOUGHT]\nLima.",
        "<unused94>hm<unused95>Lima.",
    ],
)
def test_an_answer_has_neither_thoughts_nor_tokens(text: str) -> None:
    assert read_answer(text) == "Lima."
    reading = read_think(f"---\ncomplexity: simple\n---\n{text}")
    assert not isinstance(reading, Complaint)
    assert reading.body == "Lima."


@pytest.mark.parametrize(
    "text",
    ["Write `</s>` there.", "The tag <think> opens thoughts.", "```xml\n<think>\n```", "a <|b|> c"],
)
def test_an_answer_may_speak_of_tags_and_tokens(text: str) -> None:
    assert read_answer(text) == text


@pytest.mark.parametrize(
    "text", ["<|channel|>analysis<|message|>hm", "<think>hm", "</s>", "---\n---"]
)
def test_thoughts_and_tokens_alone_are_no_answer(text: str) -> None:
    assert read_answer(text) == ""
    assert isinstance(read_think(text), Complaint)


def test_a_revision_in_words_or_in_part_is_asked_for_as_a_plan() -> None:
    head = "---\nverdict: continue\nsuggested_action: update_plan\n---\n"
    for body in (
        "Please retry step 2 with another source.",
        f"{TWO}- ... (rest unchanged)",
        f"{TWO}(steps 3 and 4 stay as they are)",
        f"```diff\n- {TWO}+ {TWO}```",
        f"{ONE}- [ ] 2. Find B @coder (after",
    ):
        assert isinstance(read_feedback(head + body, TEAM), Complaint)
    reading = read_feedback("---\nverdict: continue\n---\n(no changes)", TEAM)
    assert not isinstance(reading, Complaint)
    separate = read_feedback(head + "Retry step 2.", TEAM, holds_plan=False)
    assert not isinstance(separate, Complaint)
    assert separate.update == "Retry step 2."


@pytest.mark.parametrize(
    "text",
    [
        "```\n---\nstatus: failed\n---\nNo data.\n```",
        "Here is my report:\n\n---\nstatus: failed\nconfidence: 0.2\n---\nNo data.",
        '{"status": "failed", "result": "No data."}',
        "```yaml\nstatus: failed\n```\n\nNo data.",
        "**status:** failed\n**retry:** no\n\nNo data.",
        "---\nстатус: ошибка\n---\nNo data.",
    ],
)
def test_a_specialist_is_read_as_tolerantly_as_the_host(text: str) -> None:
    reading = read_specialist(text)
    assert (reading.status, reading.body) == ("failed", "No data.")


def test_a_plan_with_yaml_aliases_or_endless_depth_is_not_loaded() -> None:
    bomb = "a: &a [1, 1]\nb: &b [*a, *a]\nsteps:\n  - id: 1\n    task: x\n    agent: coder\n"
    deep = "- " * 5_000 + "task: x"
    for text in (bomb, deep, "[" * 100_000, '{"steps": ' * 50_000):
        find_plan(text, TEAM, expected=True)


@pytest.mark.parametrize("head", ["Prereq", "Comes once done", "先"])
def test_a_column_of_nothing_but_labels_of_steps_is_their_order_whatever_its_name(
    head: str,
) -> None:
    rows = f"| Step | What | Agent | {head} |\n|--|--|--|--|\n| 1 | Find A | researcher | - |\n"
    found = steps(rows + "| 2 | Find B | coder | |\n| 3 | Compare | writer | 1, 2 |\n")
    assert [step.dependencies for step in found] == [(), (), (1, 2)]


def test_a_column_of_other_numbers_is_no_order() -> None:
    rows = "| Step | What | Agent | Priority |\n|--|--|--|--|\n| 1 | Find A | researcher | |\n"
    found = steps(rows + "| 2 | Find B | coder | 1 |\n")
    assert [step.dependencies for step in found] == [(), ()]


def test_a_column_that_nobody_knows_is_handed_to_whoever_does_the_step() -> None:
    rows = (
        "| Step | What | Agent | Remark |\n|--|--|--|--|\n| 1 | Find A | researcher | of 2024 |\n"
    )
    found = steps(rows + "| 2 | Find B | coder | |\n")
    assert [step.brief for step in found] == ["Remark: of 2024", ""]


@pytest.mark.parametrize(
    "order",
    ["（依赖第1至3步）", "(waits for steps 1 through 3)", "(nach den Schritten 1 bis 3)"],
)
def test_a_range_in_words_names_all_of_its_steps(order: str) -> None:
    *_, last = steps(f"{ONE}{TWO}- [ ] 3. Find C @coder\n- [ ] 4. Sum up @writer {order}\n")
    assert last.dependencies == (1, 2, 3)


def test_a_very_long_range_names_all_of_its_steps_that_there_are() -> None:
    lines = [f"{number}. Look into part {number} @coder" for number in range(1, 121)]
    body = "\n".join([*lines, "121. Sum up @writer [deps: 1-120]"])
    assert steps(body)[-1].awaits == tuple(range(1, 121))


def test_a_very_long_range_that_ends_at_no_step_is_told() -> None:
    body = ONE + TWO + "- [ ] 3. Sum up @writer [deps: 1-900]\n"
    assert told(body)


@pytest.mark.timeout(10)
@pytest.mark.parametrize("reply", [">\n>", "> \n\n>\n", "  \n>\n", "  >\n| - \n>"])
def test_a_reply_of_margins_alone_is_read_to_its_end_and_is_no_plan(reply):
    assert find_plan(reply, ("a",), expected=False) is None
    assert isinstance(read_think(reply, ("a",)), Complaint)


@pytest.mark.parametrize(
    "line", ["在第一步之后编写报告", "第一步完成后：编写报告", "根据步骤1编写报告"]
)
def test_of_an_order_that_begins_a_line_the_model_is_asked(line):
    assert "looks_like_dependency" in told(f"{ONE}- [ ] 2. {line} @writer\n")


def test_a_step_that_names_its_own_number_says_no_order():
    assert told(f"{ONE}- [ ] 2. 第二步汇总数据 @writer\n") == ""


def test_spaces_within_a_line_are_no_margin() -> None:
    body = "Here:\n\n> 1. Find the data @coder\n2. Sum  up the data @writer (after 1)\n"
    assert steps(body)[-1].description.split() == ["Sum", "up", "the", "data"]


@pytest.mark.parametrize(
    ("line", "task", "who"),
    [
        ("Sum up what @coder found @writer", "Sum up what coder found", ("writer",)),
        ("Sum up what @coder found (writer, after 1)", "Sum up what coder found", ("writer",)),
        ("@writer: Sum up what @coder found", "Sum up what coder found", ("writer",)),
        ("Check @coder's numbers @writer", "Check coder's numbers", ("writer",)),
        ("Sum up what @coder found, assigned to: writer", "Sum up what coder found", ("writer",)),
        ("Sum up what @coder found - writer", "Sum up what coder found", ("writer",)),
        ("writer: Sum up what @coder found", "Sum up what coder found", ("writer",)),
        ("Sum up what @coder found **writer**", "Sum up what coder found", ("writer",)),
        ("Ask @coder to look again", "Ask coder to look again", ("coder",)),
        ("@coder and @writer look again", "look again", ("coder", "writer")),
        ("Look again @coder and @writer", "Look again", ("coder", "writer")),
        ("Look again @coder @writer (after 1)", "Look again", ("coder", "writer")),
    ],
)
@pytest.mark.parametrize("mark", ["", "- [ ] "])
def test_a_member_who_is_spoken_of_does_not_do_the_step(line, task, who, mark) -> None:
    found = steps(f"{mark}1. Find the data @coder\n{mark}2. {line}\n")[-1]
    assert (found.description, found.specialists) == (task, who)
