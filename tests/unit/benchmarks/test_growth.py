"""The benchmark of growth, at a small size: calls, tokens and bytes are exact facts."""

import pytest


@pytest.fixture
def growth(script):
    return script("growth")


@pytest.fixture
def plans(script):
    return script("plans")


@pytest.fixture(scope="module")
def tables(rows):
    found = rows("growth", "--steps", "3", "6", "--rounds", "3", "6")
    names = dict.fromkeys(row["table"] for row in found)
    return {name: [row for row in found if row["table"] == name] for name in names}


def column(table, name):
    return [row[name] for row in table]


def test_it_gives_bytes_and_tokens_for_each_kind_of_run(tables):
    kinds = ("a plan in one round", "one step a round", "one revision a round")
    assert list(tables) == [f"{what}: {kind}" for what in ("Bytes", "Tokens") for kind in kinds]
    assert {len(table) for table in tables.values()} == {2}


def test_a_run_takes_a_call_for_each_step_and_two_more_and_one_for_each_revision(tables):
    assert column(tables["Tokens: a plan in one round"], "calls") == [5, 8]
    assert column(tables["Tokens: one step a round"], "calls") == [5, 8]
    assert column(tables["Tokens: one revision a round"], "calls") == [7, 13]


def test_a_round_takes_five_super_steps_whatever_it_does(tables):
    assert column(tables["Bytes: a plan in one round"], "checkpoints") == [9, 9]
    assert column(tables["Bytes: one step a round"], "checkpoints") == [19, 34]
    assert column(tables["Bytes: one revision a round"], "checkpoints") == [19, 34]


def test_a_plan_takes_hardly_more_tokens_than_the_least(tables):
    for table in ("Tokens: a plan in one round", "Tokens: one step a round"):
        assert all(1 <= ratio < 1.08 for ratio in column(tables[table], "over the least"))


def test_the_scope_of_a_round_changes_nothing_in_what_is_said(tables):
    whole, single = tables["Tokens: a plan in one round"], tables["Tokens: one step a round"]
    assert column(whole, "tokens") == column(single, "tokens")


def test_a_prompt_has_the_results_that_its_call_needs_once_each_and_no_others(growth, plans):
    shape = plans.random_dag(6, 2)
    for call in growth.run_of(shape).calls:
        text = "\n".join(message.text for message in call.messages)
        needed = shape.waits[call.step] if call.step else ()
        if call.node == "feedback":
            needed = shape.waits
        shown = {step: text.count(growth.result_text(step)) for step in shape.waits}
        assert shown == {step: int(step in needed) for step in shape.waits}


def test_results_have_the_tokens_that_they_are_said_to_have(growth):
    texts = [growth.result_text(step) for step in range(1, 101)]
    assert {len(text) for text in texts} == {1600}
    assert len(set(texts)) == 100


def test_every_step_adds_the_same_bytes_of_results(growth, plans):
    stored = [growth.run_of(plans.flat(steps)).left for steps in (2, 4, 6)]
    two, four, six = (left.bytes_by_channel["current_specialist_results"] for left in stored)
    assert six - four == four - two > 2 * growth.RESULT_CHARACTERS


@pytest.mark.parametrize("kind", ["one step a round", "one revision a round"])
def test_a_round_stores_as_many_bytes_late_in_a_run_as_early(growth, kind):
    # What grows is written whole each time it has doubled: these runs end alike in that course.
    ten, twenty, forty = (growth.run_over(rounds, kind).left for rounds in (10, 20, 40))
    early, late = (twenty.bytes - ten.bytes) / 10, (forty.bytes - twenty.bytes) / 20
    # Versions in a checkpoint are random numbers, so its length differs by a few bytes.
    assert 0.9 * early < late < 1.02 * early
    for channel, length in forty.bytes_by_channel.items():
        before = twenty.bytes_by_channel[channel]
        assert length - before <= 2.1 * (before - ten.bytes_by_channel[channel]) + 100


def test_every_store_holds_the_same_rows(growth, plans, postgres_dsn):
    stores = ("memory", "sqlite", postgres_dsn)
    memory, file, server = (growth.run_of(plans.flat(2), store=each).left for each in stores)
    for left in (file, server):
        assert (left.checkpoints, left.writes) == (memory.checkpoints, memory.writes)
        assert left.bytes_by_channel == pytest.approx(memory.bytes_by_channel, rel=0.05, abs=30)
        assert left.journal_bytes > 2 * growth.RESULT_CHARACTERS


def test_the_bytes_of_a_run_are_those_of_all_tables(growth, plans):
    left = growth.run_of(plans.flat(2), store="sqlite").left
    writes = sum(left.bytes_by_channel.values())
    assert left.bytes == left.checkpoint_bytes + writes + left.journal_bytes
    assert left.checkpoint_bytes > 0
