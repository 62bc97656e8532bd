"""Which level says what of knowledge, and what a team may be given as knowledge."""

import pytest

from replan import (
    PlanDocument,
    RAGOptions,
    RunSettings,
    Specialist,
    Team,
    TeamError,
)
from replan.cli.shared.worst_case import team_of
from replan.knowledge import FolderRetriever
from replan.state.knowledge import (
    ANY_SCORE,
    NO_KNOWLEDGE,
    SEARCHED,
    Chunk,
    knowledge_options,
)
from replan.state.step_options import option_mistakes, step_options, without_options
from replan.state.tightening import tightened
from replan.views.ahead.outlook import outlook
from replan.views.ahead.preview import calls_of_reply

NOBODY = Specialist("a", "Works.", run=lambda context: "done")


def test_what_nobody_says_is_no_search_and_five_chunks_of_any_score():
    said = knowledge_options()
    assert (said.mode, said.top_k, said.min_score) == ("none", 5, ANY_SCORE)
    assert (said.map_max_chunks, said.timeout_seconds, said.use_summary) == (5, 30.0, False)
    assert said == NO_KNOWLEDGE


def test_the_innermost_level_that_says_something_counts():
    team, own = RAGOptions(top_k=3, min_score=0.2), RAGOptions(min_score=0.4)
    step = step_options(RAGOptions, {"rag_mode": "map_reduce", "shop": "x"}, by_model=False)
    said = knowledge_options(SEARCHED, team, own, step, RAGOptions(top_k=9))
    assert (said.mode, said.top_k, said.min_score) == ("map_reduce", 9, 0.4)


def test_a_plan_says_nothing_of_filters_and_one_of_a_model_the_mode_alone():
    written = {"rag_mode": "none", "rag_top_k": 9, "rag_filters": {"file": "x"}}
    assert step_options(RAGOptions, written, by_model=True) == RAGOptions(mode="none")
    assert step_options(RAGOptions, written, by_model=False) == RAGOptions(mode="none", top_k=9)
    assert without_options({"rag_top_k": 1, "memory_mode": "full", "shop": "x"}) == {"shop": "x"}
    plan = "- [ ] 1. One @a\n\n  ```yaml\n  rag_top_k: 0\n  rag_filters: {}\n  ```\n"
    told = option_mistakes(PlanDocument.parse(plan))
    assert [(each.line, each.column) for each in told] == [(4, 3), (5, 3)]


@pytest.mark.parametrize(
    ("option", "fix"),
    [
        ("rag_top_k: true", "It should be a valid integer."),
        ('rag_top_k: "3"', "It should be a valid integer."),
        ("memory_summary_model_id: ''", "It should have at least 1 character."),
        (f"rag_mode: {'a' * 9_000}", "It should be 'none', 'stuff' or 'map_reduce'."),
    ],
)
def test_a_wrong_option_of_a_step_is_told_in_a_sentence_that_is_not_too_long(option, fix):
    text = f"- [ ] 1. One @a\n\n  ```yaml\n  {option}\n  ```\n"
    (told,) = option_mistakes(PlanDocument.parse(text))
    assert told.fix == fix
    assert len(told.reason) < 200


def test_numbers_of_a_step_may_be_whole():
    assert step_options(RAGOptions, {"rag_min_score": 1}, by_model=False).min_score == 1.0


def test_a_team_takes_a_folder_or_an_object_with_a_search(tmp_path):
    class Own:
        def search(self, request):
            return {}

    assert isinstance(Team("offline", [NOBODY], knowledge=str(tmp_path)).knowledge, FolderRetriever)
    own = Own()
    assert Team("offline", [NOBODY], knowledge=own).knowledge is own
    for wrong in (Own, 3, ""):
        with pytest.raises(TeamError, match="knowledge"):
            Team("offline", [NOBODY], knowledge=wrong)


@pytest.mark.parametrize(
    ("given", "score"),
    [
        ({"score": 0.2}, 0.2),
        ({"similarity": 0.7}, 0.7),
        ({"score": 0.2, "similarity": 0.7}, 0.2),
        ({"score": None, "similarity": 0.7}, 0.7),
        ({}, 0.0),
    ],
)
def test_the_score_counts_and_else_the_similarity(given, score):
    assert Chunk(content="x", **given).score == score


def test_clients_of_a_server_may_only_ask_for_less():
    team = RunSettings(rag=RAGOptions(top_k=4, filters={"file": "a/*"}), tenant="north")
    asked = RAGOptions(
        mode="map_reduce", top_k=40, min_score=-1, filters={"file": "*"}, timeout_seconds=900
    )
    taken = tightened(team, RunSettings(rag=asked, tenant="south"))
    assert taken.tenant == "north"
    assert taken.rag == RAGOptions(
        top_k=4, min_score=-1, filters={"file": "a/*"}, timeout_seconds=30.0
    )
    less = RAGOptions(mode="none", top_k=1, min_score=0.5)
    assert tightened(team, RunSettings(rag=less)).rag == less


@pytest.mark.parametrize(
    ("block", "asked", "more"),
    [
        ("shop: north", RAGOptions(), 0),
        ("rag_mode: map_reduce", RAGOptions(), 6),
        ("rag_mode: map_reduce\n  rag_map_max_chunks: 2", RAGOptions(), 3),
        ("rag_mode: map_reduce", RAGOptions(mode="none"), 0),
        ("rag_mode: none", RAGOptions(use_summary=True), 0),
        ("shop: north", RAGOptions(use_summary=True), 1),
    ],
)
def test_the_bound_of_a_plan_counts_what_its_steps_say_of_knowledge(tmp_path, block, asked, more):
    text = f"- [ ] 1. One @a (retries 1)\n\n  ```yaml\n  {block}\n  ```\n"
    plan = PlanDocument.parse(text).plan
    clerk = Specialist("a", "Works.", chat_model="offline")
    team = Team("offline", [clerk], knowledge=str(tmp_path), allow_dynamic_update=False)
    bounds = [
        outlook(plan, known)["model_calls"]["merged"]["unrevised"]
        for known in (team_of(team.replace(knowledge=None)), team_of(team, RunSettings(rag=asked)))
    ]
    assert bounds[1] - bounds[0] == more * 2 * calls_of_reply(0)
