"""Who does a step that names nobody, and how a written name finds its specialist."""

import pytest
from hypothesis import given, strategies as st

from replan.plan.model import PlanStep
from replan.state.team import SpecialistCard, chosen_for, find_specialist

TEAM = (
    SpecialistCard(name="writer", intended_use="Writes reports and letters."),
    SpecialistCard(
        name="analyst", intended_use="Computes from tables.", capabilities=("sums", "csv files")
    ),
    SpecialistCard(name="研究员", intended_use="查找资料和政策", capabilities=("网络搜索",)),
)


def chosen(task, team):
    return chosen_for(PlanStep(id=1, description=task), team)


@pytest.mark.parametrize(
    ("task", "name"),
    [
        ("Compute the total from the table", "analyst"),
        ("Add up the CSV file", "analyst"),
        ("Write the report", "writer"),
        ("WRITING A LETTER", "writer"),
        ("Ask the writer about tables", "writer"),
        ("请搜索欧盟的电动车政策", "研究员"),
        ("查资料", "研究员"),
    ],
)
def test_a_task_goes_to_the_specialist_whose_card_shares_its_words(task, name):
    assert chosen(task, TEAM) == name


def test_a_name_weighs_more_than_a_capability_and_a_capability_more_than_the_intended_use():
    use, capability, name = (
        SpecialistCard(name="x", intended_use="Handles maps."),
        SpecialistCard(name="y", intended_use="Other.", capabilities=("maps",)),
        SpecialistCard(name="maps", intended_use="Other."),
    )
    assert chosen("Draw a map", [use, capability, name]) == "maps"
    assert chosen("Draw a map", [use, capability]) == "y"


@pytest.mark.parametrize("task", ["分析", "", "!?"])
def test_a_task_that_fits_no_card_is_nobodys(task):
    assert chosen(task, TEAM) == ""


def test_a_tie_is_nobodys():
    twins = [SpecialistCard(name=name, intended_use="Finds facts.") for name in ("y", "x")]
    assert chosen("Find a fact", twins) == ""


def test_nobody_is_chosen_of_an_empty_team():
    assert chosen("Anything", []) == ""


CARDS = st.builds(
    SpecialistCard,
    name=st.text(min_size=1, max_size=8),
    intended_use=st.text(max_size=20),
    capabilities=st.lists(st.text(max_size=8), max_size=3).map(tuple),
)


@given(st.text(max_size=60), st.lists(CARDS, min_size=1, max_size=5))
def test_one_specialist_is_chosen_or_nobody_whatever_is_written(task, team):
    assert chosen(task, team) in {"", *(card.name for card in team)}


@pytest.mark.parametrize("written", ["analyst", "Analyst", " ANALYST "])
def test_a_name_is_found_without_regard_to_case_and_blanks(written):
    assert find_specialist(written, TEAM) == "analyst"


@pytest.mark.parametrize("written", ["", "analysts", "ana"])
def test_a_name_that_nobody_has_finds_nobody(written):
    assert find_specialist(written, TEAM) is None
