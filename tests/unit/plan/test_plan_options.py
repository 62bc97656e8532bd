"""Every option of the table is read, written, documented and part of what a revision may change."""

from pathlib import Path

import pytest

from replan.plan import PlanDocument, compare, fingerprint
from replan.plan.markdown.rendering import VISIBLE
from replan.plan.option_table import ASSIGNED, OPTIONS, PROMPTED, STRUCTURAL, removed_options
from replan.specialists.steps.on_record import keys_of

PLANS = (Path(__file__).parents[3] / "docs" / "plans.md").read_text("utf-8")
ROWS = [pytest.param(option, id=option.word) for option in OPTIONS]
BEFORE = "- [ ] 1. One @a\n- [ ] 2. Two @a\n"


def with_option(text):
    """A plan in which the third step has an option in parentheses."""
    return PlanDocument.parse(f"{BEFORE}- [ ] 3. Do it @a{text}\n").plan


@pytest.mark.parametrize("option", ROWS)
def test_an_option_is_written_as_its_example_and_in_all_its_words(option):
    plan = with_option(f" ({option.example})")
    value = option.example.removeprefix(option.word).strip()
    for word in option.words.split("|"):
        for text in (f"（{word} {value}）", f"\n  - **{word.upper()}:** {value or 'yes'}"):
            assert with_option(text).steps == plan.steps, word
    changes = compare(with_option(""), plan)
    (fields,) = changes.modified.values()
    assert fields.keys() == {option.field}


@pytest.mark.parametrize("option", ROWS)
def test_an_option_is_a_part_of_the_document_and_of_revisions(option):
    assert option.field in VISIBLE
    assert option.field in STRUCTURAL


@pytest.mark.parametrize("option", [*OPTIONS, ASSIGNED], ids=lambda option: option.word)
def test_an_option_and_its_words_are_documented(option):
    assert f"| `{option.example.split()[0]}" in PLANS
    missing = [word for word in option.words.split("|") if f"`{word}`" not in PLANS]
    assert missing in ([], [option.word])


@pytest.mark.parametrize("option", ROWS)
def test_what_an_option_changes_decides_about_fingerprints_and_keys(option):
    bare, step = with_option("").step(3), with_option(f" ({option.example})").step(3)
    one, two = (keys_of("r", each, "a", {}) for each in (bare, step))
    is_task = option.changes == "task"
    assert (fingerprint(bare) != fingerprint(step)) == (option.changes in ("task", "order"))
    assert (one.result != two.result) == is_task
    assert (one.idempotency != two.idempotency) == is_task
    assert (one.attempt != two.attempt) == (option.changes in ("task", "attempt"))


@pytest.mark.parametrize("option", ROWS)
def test_only_what_the_team_may_remove_alone_stays(option):
    bare, step = with_option("").step(3), with_option(f" ({option.example})").step(3)
    assert (removed_options(step, bare) != {}) == (option.removed_by == "team")
    assert removed_options(bare, step) == {}


def test_prompts_name_the_options_of_models():
    assert PROMPTED.startswith("`after 1, 2` (uses their results), `if 2 failed`")
    assert "ask first" not in PROMPTED


@pytest.mark.parametrize("text", ["retry 3 times", "retries: 3x", "重试3次", "retries 3"])
def test_retries_are_read_as_people_write_them(text):
    assert with_option(f" ({text})").step(3).max_retries == 3
