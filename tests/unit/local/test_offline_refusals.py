"""The offline model answers at once what it can, and refuses honestly what it cannot."""

import pytest


@pytest.mark.parametrize(
    "request_text",
    [
        "Write a poem about the sea",
        "Find the population of France",
        "Compare the EU's and the US's EV policy",
        "Who won the match yesterday?",
        "Search the web for the latest news",
        "What is the difference between Python and Java?",
        "Translate the report into French",
        "Write a report",
        "写一首诗",
        "",
    ],
)
def test_what_only_a_language_model_can_do_is_refused_with_the_way_to_one(reply, request_text):
    text = reply("think", request_text)
    assert "complexity: simple" in text
    assert "The offline model cannot do this" in text
    assert "--model openai:NAME --base-url URL" in text
    assert "OPENAI_API_KEY" in text


@pytest.mark.parametrize(
    ("request_text", "answer"),
    [
        ("What is 12 * (3 + 4)?", "= 84"),
        ("1,250 plus 0.5", "= 1250.5"),
        ("20% of 45", "= 9"),
        ("10 / 4 =", "= 2.5"),
        ("calculate 2 ^ 10", "= 1024"),
        ("1/3", "= 0.333333333333 (rounded)"),
        ("7 / 0", "not defined"),
        ("-3 - -4", "= 1"),
        ("growth from 120 to 150", "= 25 %"),
        ("What is the sum of 1, 2 and 3?", "= 6"),
    ],
)
def test_arithmetic_is_answered_exactly(reply, request_text, answer):
    assert answer in reply("think", request_text)


@pytest.mark.parametrize("hard", ["9**9**9**9", "2 ** 999999", "1" * 500 + "+1", "((((((1+"])
def test_arithmetic_that_would_take_for_ever_is_not_tried(reply, hard):
    assert "cannot do this" in reply("think", hard)


@pytest.mark.parametrize("greeting", ["hi", "Hello!", "good morning", "what can you do?", "你好"])
def test_small_talk_tells_who_is_there(reply, greeting):
    text = reply("think", greeting)
    assert "Offline model" in text
    assert "data_analyst" in text


def test_the_direct_answer_of_its_own_has_no_front_matter(reply):
    assert reply("direct_answer", "3 + 4") == "3 + 4 = 7"


def test_without_a_team_everything_is_refused(reply):
    assert "it has no team" in reply("think", "Total cost by team from b.csv", cards=())


def test_as_a_specialist_it_fails_for_good(reply):
    text = reply("specialist", "Total cost by team", specialist="lawyer")
    assert text.startswith("---\nstatus: failed\nretry: no\n---\n")
    assert "'lawyer'" in text


def test_a_host_that_insists_gets_a_plan(reply):
    text = reply("plan_creation", "<request>\nFind the population of France\n</request>")
    assert "- [ ] 1. Find the population of France @" in text
