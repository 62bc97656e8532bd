"""Documents as people and models write them, and the plan that is read in each."""

# ruff: noqa: E501
# The documents stand as they were written, full-width punctuation included.

from replan.plan import PlanDocument, PlanStep, refresh_content
from replan.plan.markdown.outline import MARKS
from replan.plan.option_table import write_options

CORPUS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "the_canonical_example": (
        (
            "# Compare the EU's and the US's EV policy\n"
            "\n"
            "- [x] 1. Find the EU's current EV policy @researcher\n"
            "- [~] 2. Find the US's current EV policy @researcher\n"
            "- [ ] 3. Compare subsidies, tariffs and charging @analyst (after 1, 2; priority 2; retries 1)\n"
            "\n"
            "  Free text under a step is its brief. A fenced `yaml` block holds parameters.\n"
            "\n"
            "- [ ] 4. Write a one-page brief @writer (after 3)\n"
        ),
        "Compare the EU's and the US's EV policy",
        (
            "[x] 1. Find the EU's current EV policy @researcher",
            "[ ] 2. Find the US's current EV policy @researcher",
            "[ ] 3. Compare subsidies, tariffs and charging @analyst (after 1, 2; priority 2; retries 1) | brief: 'Free text under a step is its brief. A fenced `yaml` block holds parameters.'",
            "[ ] 4. Write a one-page brief @writer (after 3)",
        ),
    ),
    "a_plain_numbered_list": (
        ("1. [ ] Find it\n2. [ ] Compare it\n3. [ ] Write it\n"),
        "",
        (
            "[ ] 1. Find it",
            "[ ] 2. Compare it",
            "[ ] 3. Write it",
        ),
    ),
    "a_numbered_list_without_boxes": (
        ("Steps:\n\n1. Find it @a\n   - in the library\n2. Compare it (after 1)\n\n- a remark\n"),
        "",
        (
            "[ ] 1. Find it @a | brief: '- in the library'",
            "[ ] 2. Compare it (after 1)",
        ),
    ),
    "numbers_with_a_closing_parenthesis": (
        ("1) [ ] Find it @a\n2) [ ] Compare it @b (after 1)\n"),
        "",
        (
            "[ ] 1. Find it @a",
            "[ ] 2. Compare it @b (after 1)",
        ),
    ),
    "lazy_numbers": (
        ("1. [ ] Find it\n1. [ ] Compare it\n1. [ ] Write it (after 2)\n"),
        "",
        (
            "[ ] 1. Find it",
            "[ ] 2. Compare it",
            "[ ] 3. Write it (after 2)",
        ),
    ),
    "plus_bullets_with_marks": (
        ("+ [ ] Find it\n+ [X] Compare it\n"),
        "",
        (
            "[ ] 1. Find it",
            "[x] 2. Compare it",
        ),
    ),
    "bold_title": (
        ("- [ ] 1. **Find it** @a\n- [ ] 2. **Compare it** (after 1)\n"),
        "",
        (
            "[ ] 1. Find it @a",
            "[ ] 2. Compare it (after 1)",
        ),
    ),
    "bold_number_and_title": (
        ("- [ ] **1. Find it** @a\n- [ ] **2. Compare it** @b (after 1)\n"),
        "",
        (
            "[ ] 1. Find it @a",
            "[ ] 2. Compare it @b (after 1)",
        ),
    ),
    "step_words": (
        ("- [ ] Step 1: Find it @a\n- [ ] Step 2: Compare it @b (depends on step 1)\n"),
        "",
        (
            "[ ] 1. Find it @a",
            "[ ] 2. Compare it @b (after 1)",
        ),
    ),
    "bold_step_words": (
        ("- [ ] **Step 1:** find it\n- [ ] **Step 2:** compare it (depends on step 1)\n"),
        "",
        (
            "[ ] 1. find it",
            "[ ] 2. compare it (after 1)",
        ),
    ),
    "numbers_without_a_blank_or_a_stop": (
        ("- [ ] 2.Find it @a\n- [ ] Step 7 Compare it (after 2)\n- [ ] 4 - Print it\n"),
        "",
        (
            "[ ] 2. Find it @a",
            "[ ] 7. Compare it (after 2)",
            "[ ] 4. Print it",
        ),
    ),
    "step_words_after_numbers": (
        ("1. [ ] Step 1: Find it\n2. [ ] Step 2: Compare it\n"),
        "",
        (
            "[ ] 1. Find it",
            "[ ] 2. Compare it",
        ),
    ),
    "chinese": (
        (
            "# 电动车政策比较\n"
            "\n"
            "- [ ] 1. 查找欧盟政策 @研究员\n"
            "- [ ] 2. 查找美国政策 @研究员\n"
            "- [ ] 3. 比较两者 @分析师（依赖：1、2）\n"
        ),
        "电动车政策比较",
        (
            "[ ] 1. 查找欧盟政策 @研究员",
            "[ ] 2. 查找美国政策 @研究员",
            "[ ] 3. 比较两者 @分析师 (after 1, 2)",
        ),
    ),
    "chinese_step_words_and_keys": (
        (
            "- [ ] 步骤 1：查找政策\n"
            "  - 负责人：研究员\n"
            "- [ ] 步骤 2：比较\n"
            "  - 负责人：分析师\n"
            "  - 依赖：步骤1\n"
        ),
        "",
        (
            "[ ] 1. 查找政策 @研究员",
            "[ ] 2. 比较 @分析师 (after 1)",
        ),
    ),
    "a_fence_around_the_whole": (
        ("```markdown\n# Plan\n\n- [ ] 1. Find it @a\n- [ ] 2. Compare it @b (after 1)\n```\n"),
        "Plan",
        (
            "[ ] 1. Find it @a",
            "[ ] 2. Compare it @b (after 1)",
        ),
    ),
    "a_fence_that_never_ends": (
        ("```md\n- [ ] 1. Find it @a\n- [ ] 2. Compare it\n"),
        "",
        (
            "[ ] 1. Find it @a",
            "[ ] 2. Compare it",
        ),
    ),
    "prose_around": (
        (
            "I thought about it.\n"
            "\n"
            "- [ ] 1. Find it @a\n"
            "- [ ] 2. Compare it (after 1)\n"
            "\n"
            "That should do.\n"
        ),
        "",
        (
            "[ ] 1. Find it @a",
            "[ ] 2. Compare it (after 1)",
        ),
    ),
    "phases": (
        (
            "# Plan\n"
            "\n"
            "## Phase 1: Research\n"
            "\n"
            "1. [ ] Find it @a\n"
            "2. [ ] Read it @a (after 1)\n"
            "\n"
            "## Phase 2: Writing\n"
            "\n"
            "3. [ ] Write it @b (after 2)\n"
        ),
        "Plan",
        (
            "[ ] 1. Find it @a",
            "[ ] 2. Read it @a (after 1)",
            "[ ] 3. Write it @b (after 2)",
        ),
    ),
    "marked_phases": (
        (
            "## Research\n"
            "- [x] 1. Find it\n"
            "- [ ] 2. Read it\n"
            "\n"
            "## Writing\n"
            "- [ ] 3. Write it (after 1, 2)\n"
        ),
        "",
        (
            "[x] 1. Find it",
            "[ ] 2. Read it",
            "[ ] 3. Write it (after 1, 2)",
        ),
    ),
    "nested_phases": (
        (
            "- Research\n"
            "  - [ ] 1. Find it @a\n"
            "  - [ ] 2. Read it @a (after 1)\n"
            "- Writing\n"
            "  - [ ] 3. Write it @b (after 2)\n"
        ),
        "",
        (
            "[ ] 1. Find it @a",
            "[ ] 2. Read it @a (after 1)",
            "[ ] 3. Write it @b (after 2)",
        ),
    ),
    "nested_lists_are_briefs": (
        (
            "1. [ ] Find it @a\n"
            "   - in the library\n"
            "   - in the archive\n"
            "2. [ ] Compare it (after 1)\n"
            "   1. first the prices\n"
            "   2. then the rest\n"
        ),
        "",
        (
            "[ ] 1. Find it @a | brief: '- in the library\\n- in the archive'",
            "[ ] 2. Compare it (after 1) | brief: '1. first the prices\\n2. then the rest'",
        ),
    ),
    "briefs_indented_by_two_under_numbers": (
        ("1. [ ] Find it\n\n  Look in the library.\n\n2. [ ] Compare it\n  - depends on: 1\n"),
        "",
        (
            "[ ] 1. Find it | brief: 'Look in the library.'",
            "[ ] 2. Compare it (after 1)",
        ),
    ),
    "key_lines": (
        (
            "- [ ] 1. Find it\n"
            "- [ ] 2. Compare it\n"
            "  - depends on: 1\n"
            "  - assigned to: analyst\n"
            "  - priority: 2\n"
            "  - retries: 3\n"
            "  - timeout: 2m\n"
            "  - optional: true\n"
        ),
        "",
        (
            "[ ] 1. Find it",
            "[ ] 2. Compare it @analyst (after 1; optional; priority 2; retries 3; timeout 120s)",
        ),
    ),
    "key_lines_without_bullets": (
        (
            "- [ ] 1. Find it\n"
            "  Specialist: researcher\n"
            "  Dependencies: none\n"
            "- [ ] 2. Compare it\n"
            "  Specialist: analyst\n"
            "  Dependencies: [1]\n"
            "  Timeout: 500ms\n"
        ),
        "",
        (
            "[ ] 1. Find it @researcher",
            "[ ] 2. Compare it @analyst (after 1; timeout 0.5s)",
        ),
    ),
    "bold_keys": (
        (
            "1. [ ] Find it\n"
            "   - **Specialist:** `researcher`\n"
            "   - **Depends on:** None\n"
            "2. [ ] Compare it\n"
            "   - **Specialist:** `analyst`\n"
            "   - **Depends on:** Step 1\n"
            "   - **Condition:** if step 1 failed\n"
        ),
        "",
        (
            "[ ] 1. Find it @researcher",
            "[ ] 2. Compare it @analyst (after 1; if 1 failed)",
        ),
    ),
    "mentions_in_parentheses": (
        (
            "- [ ] 1. Find it (@a)\n"
            "- [ ] 2. Compare it (@b) (after 1)\n"
            "- [ ] 3. Write it (@c; after 2)\n"
        ),
        "",
        (
            "[ ] 1. Find it @a",
            "[ ] 2. Compare it @b (after 1)",
            "[ ] 3. Write it @c (after 2)",
        ),
    ),
    "several_specialists": (
        ("- [ ] 1. Find it @a @b\n- [ ] 2. Compare it @a, @b and @c (after 1)\n"),
        "",
        (
            "[ ] 1. Find it @a @b",
            "[ ] 2. Compare it @a @b @c (after 1)",
        ),
    ),
    "assigned_in_words": (
        (
            "- [ ] 1. Find it (assigned to: a)\n"
            "- [ ] 2. Compare it (assigned to b, after 1)\n"
            "- [ ] 3. Write it (Specialist: c; after 2)\n"
        ),
        "",
        (
            "[ ] 1. Find it @a",
            "[ ] 2. Compare it @b (after 1)",
            "[ ] 3. Write it @c (after 2)",
        ),
    ),
    "an_address_is_text": (
        ("- [ ] 1. Write to bob@example.com about it\n- [ ] 2. Ask @home about it twice\n"),
        "",
        (
            "[ ] 1. Write to bob@example.com about it",
            "[ ] 2. Ask @home about it twice",
        ),
    ),
    "all_marks": (
        (
            "- [ ] 1. a\n"
            "- [~] 2. b\n"
            "- [x] 3. c\n"
            "- [X] 4. d\n"
            "- [!] 5. e\n"
            "\n"
            "  > **Failed:** The site was down.\n"
            "\n"
            "- [-] 6. f\n"
            "\n"
            "  > **Skipped:** Not needed.\n"
        ),
        "",
        (
            "[ ] 1. a",
            "[ ] 2. b",
            "[x] 3. c",
            "[x] 4. d",
            "[!] 5. e | feedback: 'The site was down.'",
            "[-] 6. f | feedback: 'Not needed.'",
        ),
    ),
    "results": (
        ("- [x] 1. Find it @a\n\n  > First paragraph.\n  >\n  > - a list\n\n- [ ] 2. Compare it\n"),
        "",
        (
            "[x] 1. Find it @a | result: 'First paragraph.\\n\\n- a list'",
            "[ ] 2. Compare it",
        ),
    ),
    "conditions": (
        (
            "- [ ] 1. Try it\n"
            "- [ ] 2. Fix it (if 1 failed)\n"
            "- [ ] 3. Praise it (if step 1 succeeds)\n"
            "- [ ] 4. Tell it (after 1, 2; optional)\n"
        ),
        "",
        (
            "[ ] 1. Try it",
            "[ ] 2. Fix it (if 1 failed)",
            "[ ] 3. Praise it (if 1 completed)",
            "[ ] 4. Tell it (after 1, 2; optional)",
        ),
    ),
    "ranges_and_hashes": (
        (
            "- [ ] 1. a\n"
            "- [ ] 2. b\n"
            "- [ ] 3. c\n"
            "- [ ] 4. d (after 1-3)\n"
            "- [ ] 5. e (depends on: #1, #4)\n"
        ),
        "",
        (
            "[ ] 1. a",
            "[ ] 2. b",
            "[ ] 3. c",
            "[ ] 4. d (after 1, 2, 3)",
            "[ ] 5. e (after 1, 4)",
        ),
    ),
    "commas_for_semicolons": (
        ("- [ ] 1. a\n- [ ] 2. b\n- [ ] 3. c (after 1, 2, priority 2, optional, timeout 1.5h)\n"),
        "",
        (
            "[ ] 1. a",
            "[ ] 2. b",
            "[ ] 3. c (after 1, 2; optional; priority 2; timeout 5400s)",
        ),
    ),
    "comments_and_code_are_no_steps": (
        ("- [ ] 1. a\n<!--\n- [ ] 9. hidden\n-->\n\n```\n- [ ] 8. code\n```\n\n- [ ] 2. b\n"),
        "",
        (
            "[ ] 1. a",
            "[ ] 2. b",
        ),
    ),
    "quoted_lists_are_no_steps": (
        ("> - [ ] 7. quoted\n\n- [ ] 1. a\n"),
        "",
        ("[ ] 1. a",),
    ),
    "missing_numbers_get_free_ones": (
        ("- [ ] Find it\n- [ ] 1. Read it\n- [ ] Write it\n- [ ] 3. Send it\n"),
        "",
        (
            "[ ] 2. Find it",
            "[ ] 1. Read it",
            "[ ] 4. Write it",
            "[ ] 3. Send it",
        ),
    ),
    "numbers_out_of_order": (
        ("- [ ] 10. Later (after 2)\n- [ ] 2. Sooner\n"),
        "",
        (
            "[ ] 10. Later (after 2)",
            "[ ] 2. Sooner",
        ),
    ),
    "windows_line_ends": (
        ("# Plan\r\n\r\n- [ ] 1. Find it @a\r\n  Look well.\r\n- [ ] 2. Compare it (after 1)\r\n"),
        "Plan",
        (
            "[ ] 1. Find it @a | brief: 'Look well.'",
            "[ ] 2. Compare it (after 1)",
        ),
    ),
    "tabs": (
        ("-\t[ ] 1. Find it\n\tLook well.\n-\t[ ] 2. Compare it (after 1)\n"),
        "",
        (
            "[ ] 1. Find it | brief: 'Look well.'",
            "[ ] 2. Compare it (after 1)",
        ),
    ),
    "no_final_line_end": (
        ("- [ ] 1. Find it\n- [ ] 2. Compare it (after 1)"),
        "",
        (
            "[ ] 1. Find it",
            "[ ] 2. Compare it (after 1)",
        ),
    ),
    "a_byte_order_mark": (
        ("\ufeff# Plan\n\n- [ ] 1. Find it\n"),
        "Plan",
        ("[ ] 1. Find it",),
    ),
    "unmarked_bullets_beside_marked_ones_are_text": (
        ("- [ ] 1. Find it\n- a remark\n- [ ] 2. Compare it\n"),
        "",
        (
            "[ ] 1. Find it",
            "[ ] 2. Compare it",
        ),
    ),
    "empty_brackets": (
        ("- [] 1. Find it\n- [x] 2. Compare it\n"),
        "",
        (
            "[ ] 1. Find it",
            "[x] 2. Compare it",
        ),
    ),
    "trailing_full_stops": (
        ("- [ ] 1. Find it @a.\n- [ ] 2. Compare it (after 1).\n"),
        "",
        (
            "[ ] 1. Find it @a",
            "[ ] 2. Compare it (after 1)",
        ),
    ),
    "parameters": (
        (
            "- [ ] 1. Find it\n"
            "  ```yaml\n"
            "  query: EV policy\n"
            "  since: 2024-01-31\n"
            "  limits: {pages: 3, sites: [a, b]}\n"
            "  ```\n"
            "  Only official sites.\n"
        ),
        "",
        (
            "[ ] 1. Find it | brief: 'Only official sites.' | parameters: {'query': 'EV policy', 'since': '2024-01-31', 'limits': {'pages': 3, 'sites': ['a', 'b']}}",
        ),
    ),
    "a_brief_in_a_fence": (
        ("- [ ] 1. Find it\n\n  ```brief\n  priority: 5\n\n  > not a result\n  ```\n"),
        "",
        ("[ ] 1. Find it | brief: 'priority: 5\\n\\n> not a result'",),
    ),
    "character_references": (
        ("- [ ] 1. Follow &#64;someone\n- [ ] 2. Read &#40;after 1)\n"),
        "",
        (
            "[ ] 1. Follow @someone",
            "[ ] 2. Read (after 1)",
        ),
    ),
    "full_width_everything": (
        (
            "- [ ] 1. 查找（负责人：研究员；优先级 2）\n"
            "- [ ] 2. 比较（依赖 1；超时 30s；重试 2；可选）\n"
        ),
        "",
        (
            "[ ] 1. 查找 @研究员 (priority 2)",
            "[ ] 2. 比较 (after 1; optional; retries 2; timeout 30s)",
        ),
    ),
    "then_a_hard_wrapped_brief": (
        ("- [ ] 1. Find it @a\nlazily continued\n- [ ] 2. Compare it\n"),
        "",
        (
            "[ ] 1. Find it @a | brief: 'lazily continued'",
            "[ ] 2. Compare it",
        ),
    ),
    "task_lists_in_task_lists": (
        ("- [ ] 1. Find it\n  - [ ] in the library\n  - [x] in the archive\n- [ ] 2. Compare it\n"),
        "",
        (
            "[ ] 1. Find it | brief: '- [ ] in the library\\n- [x] in the archive'",
            "[ ] 2. Compare it",
        ),
    ),
    "a_title_broken_over_two_lines": (
        (
            "- [ ] 1. Find it\n"
            "- [ ] 2. Compare what was found with what\n"
            "  was expected @analyst (after 1)\n"
            "- [ ] 3. Write it\n"
            "  (after 2)\n"
        ),
        "",
        (
            "[ ] 1. Find it",
            "[ ] 2. Compare what was found with what was expected @analyst (after 1)",
            "[ ] 3. Write it (after 2)",
        ),
    ),
    "latex_and_code_stay": (
        ("- [ ] 1. Compute \\(x^2\\) with `f(after 1)` @a\n"),
        "",
        ("[ ] 1. Compute \\(x^2\\) with `f(after 1)` @a",),
    ),
    "words_for_conditions": (
        (
            "- [ ] 1. 试\n"
            "- [ ] 2. 修（如果步骤 1 失败）\n"
            "- [ ] 3. Check (if step 1 fails)\n"
            "- [ ] 4. Go\n"
            "  - condition: if 1 completed\n"
        ),
        "",
        (
            "[ ] 1. 试",
            "[ ] 2. 修 (if 1 failed)",
            "[ ] 3. Check (if 1 failed)",
            "[ ] 4. Go (if 1 completed)",
        ),
    ),
    "numbers_that_are_no_numbers": (
        ("- [ ] 3.5 million people @a\n- [ ] 10:30 meeting\n"),
        "",
        (
            "[ ] 1. 3.5 million people @a",
            "[ ] 2. 10:30 meeting",
        ),
    ),
    "a_parenthesis_is_text": (
        (
            "- [ ] 1. Write the brief (short)\n"
            "- [ ] 2. Rest (a while after lunch)\n"
            "- [ ] 3. Read [the guide](after 1)\n"
            "- [ ] 4. Go home (in euros)\n"
        ),
        "",
        (
            "[ ] 1. Write the brief (short)",
            "[ ] 2. Rest (a while after lunch)",
            "[ ] 3. Read [the guide](after 1)",
            "[ ] 4. Go home (in euros)",
        ),
    ),
    "links_and_tables_around": (
        ("| a | b |\n|---|---|\n| 1 | 2 |\n\n[a]: http://example.com\n\n- [ ] 1. See [a] @a\n"),
        "",
        ("[ ] 1. See [a] @a",),
    ),
    "tags_around": (
        ("<plan>\n- [ ] 1. Find it @a\n- [ ] 2. Compare it (after 1)\n</plan>\n"),
        "",
        (
            "[ ] 1. Find it @a",
            "[ ] 2. Compare it (after 1)",
        ),
    ),
    "unmarked_lists_elsewhere": (
        ("# Plan\n\nAs we said:\n\n1. cheap\n2. fast @clerk\n\n## Steps\n\n- [ ] 1. Find it\n"),
        "Plan",
        ("[ ] 1. Find it",),
    ),
    "estimates": (
        (
            "- [ ] 1. Find it @a (estimate 5m)\n"
            "- [ ] 2. Compare it (after 1)\n"
            "  - estimate: 1.5 hours\n"
            "- [ ] 3. 总结（预计 30 秒）\n"
        ),
        "",
        (
            "[ ] 1. Find it @a (estimate 300s)",
            "[ ] 2. Compare it (after 1; estimate 5400s)",
            "[ ] 3. 总结 (estimate 30s)",
        ),
    ),
}


def shown(step: PlanStep) -> str:
    """Write a step in one line, whatever the document's manner."""
    names = "".join(f" @{name}" for name in step.specialists)
    options = f" ({written})" if (written := write_options(step)) else ""
    under = [
        f" | {name}: {value!r}"
        for name in ("brief", "parameters", "result", "feedback")
        if (value := getattr(step, name))
    ]
    line = f"[{MARKS[step.status]}] {step.id}. {step.description}{names}{options}"
    return line + "".join(under)


def test_a_document_is_read_as_people_mean_it() -> None:
    for name, (text, title, steps) in CORPUS.items():
        document = PlanDocument.parse(text)
        assert document.plan.title == title, name
        assert tuple(map(shown, document.plan.steps)) == steps, name


def test_a_document_keeps_its_bytes() -> None:
    for name, (text, _, _) in CORPUS.items():
        document = PlanDocument.parse(text)
        assert str(document) == text, name
        assert str(document.write(document.plan)) == text, name


def test_a_document_can_be_finished_step_by_step() -> None:
    for name, (text, _, _) in CORPUS.items():
        plan = PlanDocument.parse(text).plan
        for step in plan.steps:
            done = plan.step(step.id).replace(
                status="completed", result="Found: > 2\n\n- all", feedback=""
            )
            plan = refresh_content(plan.with_steps(done))
            assert PlanDocument.parse(plan.content).plan == plan, name


def test_a_document_can_be_turned_round() -> None:
    for name, (text, _, _) in CORPUS.items():
        plan = PlanDocument.parse(text).plan
        turned = refresh_content(plan.replace(steps=plan.steps[::-1]))
        assert PlanDocument.parse(turned.content).plan == turned, name
