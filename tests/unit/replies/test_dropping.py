"""Which steps a reply takes away: by marks, by crossing out, by a clause that says nothing else."""

import time

import pytest

from replan.plan import PlanDocument, parse_plan_from_markdown
from replan.replies.dropping import crossed_out, removed_steps

OLD = parse_plan_from_markdown(
    "- [x] 1. Find A @a\n- [!] 2. Find B @a\n- [ ] 3. Compare both: A, B @b (after 1, 2)\n"
    "- [ ] 4. Write the report @b (after 3)\n- [ ] 5. Cancel the order @b\n"
).steps
LEAVES_OUT = "- [ ] 2. Find B elsewhere @a\n"


def gone(document, said=""):
    text = crossed_out(document)
    new = PlanDocument.recover(text, known=[step.id for step in OLD]).plan.steps
    return sorted(removed_steps(OLD, new, [said, text]))


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("Step 3 is no longer needed.", [3]),
        ("Steps 3 and 4 are dropped because B covers them.", [3, 4]),
        ("Remove steps 3-5", [3, 4, 5]),
        ("Find B elsewhere; drop step 3, 4 and 5.", [3, 4, 5]),
        ("Drop 'Compare both: A, B'.", [3]),
        ("Removed steps: 3, 4", [3, 4]),
        ("Step 3 (cancelled)", [3]),
        ("Replace step 3 with step 4.", [3]),
        ("Step 3 is merged into step 4.", [3]),
        ("Schritt 3 entfällt.", [3]),
        ("Schritt 3 wird durch Schritt 4 ersetzt.", [3]),
        ("Les étapes 3 et 4 ne sont plus nécessaires.", [3, 4]),
        ("El paso 3 ya no es necesario.", [3]),
        ("O passo 3 não é mais necessário.", [3]),
        ("Il passo 3 è eliminato.", [3]),
        ("Шаг 3 больше не нужен.", [3]),
        ("删除步骤3", [3]),
        ("第3步已取消", [3]),
        ("ステップ3は不要です。", [3]),
        ("3단계를 삭제합니다.", [3]),
        ("الخطوة 3 لم تعد مطلوبة", [3]),
    ],
)
def test_a_clause_takes_steps_away_that_the_plan_leaves_out(said, found):
    assert gone(LEAVES_OUT, said) == found
    assert gone(f"{LEAVES_OUT}\n{said}\n") == found


@pytest.mark.parametrize(
    "said",
    [
        "",
        "Steps 3 and 4 stay as they are.",
        "Do not remove step 3.",
        "Remove the dependency of step 3.",
        "Step 3 no longer needs step 2.",
        "Skip the header in step 3.",
        "Drop step 3's table.",
        "Skip step 3 for now",
        "Step 2 failed, so skip it.",
        "Drop the last steps.",
        "Remove 300 rows",
        "Step 1 is no longer needed.",
    ],
)
def test_what_is_not_clear_takes_nothing_away(said):
    assert gone(LEAVES_OUT, said) == []


def test_a_step_that_the_plan_has_stays_whatever_is_said_of_it():
    assert gone("- [ ] 3. Compare both: A, B @b\n", "Step 3 is no longer needed.") == []


@pytest.mark.parametrize(
    "line",
    [
        "- [-] 3. Compare both: A, B @b (after 1, 2)",
        "- [ ] 3. (removed)",
        "- [ ] 3. Compare both: A, B (no longer needed) @b",
        "- [ ] ~~3. Compare both: A, B @b (after 1, 2)~~",
        "- ~~3. Compare both: A, B @b~~",
        "~~- [ ] 3. Compare both: A, B @b~~",
        "- [ ] 3. ~~Compare both: A, B~~ @b",
        "- [ ] 3. ~~Compare both: A, B~~ (removed)",
    ],
)
def test_a_line_takes_its_step_away(line):
    assert gone(f"{LEAVES_OUT}{line}\n- [ ] 4. Write the report @b (after 2)\n") == [3]


@pytest.mark.parametrize(
    "line",
    [
        "- [ ] 5. Cancel the order @b",
        "- [ ] 5. Cancel both orders @b",
        "- [ ] 5. ~~Cancel~~ Place it",
    ],
)
def test_a_step_that_is_about_removing_is_not_removed(line):
    assert gone(f"{LEAVES_OUT}{line}\n") == []


def test_a_new_step_that_is_marked_as_left_out_is_none():
    assert gone(f"{LEAVES_OUT}- [-] 7. Something else @b\n") == [7]
    assert gone(f"{LEAVES_OUT}- [-] 1. Find A @a\n") == []


@pytest.mark.parametrize("text", ["~~" + "a" * 20_000, "step 3, " * 20_000, "no " * 20_000])
def test_a_long_text_is_read_in_no_time(text):
    begun = time.process_time()
    assert gone(f"{LEAVES_OUT}{text}\n", text) == []
    assert time.process_time() - begun < 1
