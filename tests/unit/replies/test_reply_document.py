"""The rules of the reply format, one by one."""

import pytest

from replan.replies.reply import FEEDBACK_KEYS, HOST_KEYS, THINK_KEYS, read_reply
from replan.replies.unfinished import is_unfinished


def fields(text: str) -> dict[str, str]:
    return read_reply(text, HOST_KEYS).fields


def body(text: str) -> str:
    return read_reply(text, HOST_KEYS).body


def test_front_matter_stands_between_the_first_line_and_the_next_delimiter() -> None:
    reply = read_reply("---\ncomplexity: simple\nscore: 0.1\n---\nHi.\n", THINK_KEYS)
    assert reply.fields == {"complexity": "simple", "score": "0.1"}
    assert reply.body == "Hi."


def test_without_delimiters_it_is_the_leading_lines_with_a_known_key() -> None:
    text = "complexity: simple\nscore: 0.1\nHi.\nscore: 3"
    assert fields(text) == {"complexity": "simple", "score": "0.1"}
    assert body(text) == "Hi.\nscore: 3"


def test_without_delimiters_a_blank_line_ends_it() -> None:
    assert body("complexity: simple\n\nreasoning: why not") == "reasoning: why not"


def test_without_delimiters_an_indented_text_may_follow_an_empty_value() -> None:
    text = "complexity: simple\nreasoning: >\n  One.\n  Two.\n\nHi."
    assert fields(text)["reasoning"] == "One.\nTwo."
    assert body(text) == "Hi."


def test_between_delimiters_a_line_without_a_key_continues_the_value_above() -> None:
    assert fields("---\nreasoning: one\ntwo\ncomplexity: simple\n---\n")["reasoning"] == "one\ntwo"


def test_an_unknown_key_and_its_value_are_passed_over() -> None:
    text = "---\ncomplexity: simple\nmood: good\n  very good\nscore: 0.1\n---\nHi."
    assert fields(text) == {"complexity": "simple", "score": "0.1"}


def test_a_sentence_with_a_colon_is_no_unknown_key() -> None:
    text = "---\nreasoning: one\nNote: two\nand so: three\n---\nHi."
    assert fields(text)["reasoning"] == "one\nNote: two\nand so: three"


def test_prose_after_a_blank_line_cannot_continue_a_label() -> None:
    text = "---\ncomplexity: simple\n\nHello.\n\n---\n\nBye."
    assert fields(text) == {"complexity": "simple"}
    assert body(text) == "Hello.\n\n---\n\nBye."


def test_prose_after_an_unknown_key_is_not_lost() -> None:
    text = "---\ncomplexity: simple\nmood: good\n\nHello.\n---\nBye."
    assert body(text) == "Hello.\n---\nBye."


def test_prose_after_a_blank_line_is_the_body_if_there_is_no_other() -> None:
    text = "---\ncomplexity: simple\nreasoning: known\n\nLima.\n---"
    assert fields(text)["reasoning"] == "known"
    assert body(text) == "Lima."


def test_free_text_said_twice_is_kept_twice() -> None:
    assert (
        fields("---\nfeedback: one\nverdict: complete\nfeedback: two\n---")["feedback"]
        == "one\ntwo"
    )


def test_an_answer_key_between_the_delimiters_goes_before_the_rest() -> None:
    assert body("---\ncomplexity: simple\nanswer: Lima.\n---\nIt lies in Peru.") == (
        "Lima.\n\nIt lies in Peru."
    )


def test_a_known_key_ends_a_body_under_a_key_only_at_the_margin() -> None:
    text = "---\ncomplexity: complex\nplan: |\n  - [ ] 1. a\n  score: 0.1\nscore: 0.9\n---"
    assert fields(text) == {"complexity": "complex", "score": "0.9"}
    assert body(text) == "- [ ] 1. a\nscore: 0.1"


def test_a_bare_plan_key_holds_the_rest_of_the_reply() -> None:
    text = "complexity: complex\nplan: |\n  - [ ] 1. a\n\n  - [ ] 2. b\n"
    assert body(text) == "- [ ] 1. a\n\n- [ ] 2. b"


@pytest.mark.parametrize(
    "line",
    [
        "**complexity**: simple",
        "**complexity:** simple",
        "**complexity: simple**",
        "__Complexity__: simple",
        "`complexity`: `simple`",
        "`complexity: simple`",
        '"complexity": "simple",',
        "'complexity': 'simple'",
        "- complexity: simple",
        "* **complexity**: simple",
        "1. complexity: simple",
        "> complexity: simple",
        "### complexity: simple",
        "COMPLEXITY = simple",
        "complexity\uff1asimple",
        "complexity - simple",
        "complexity (estimated): simple",
        "| complexity | simple |",
        "complexity: “simple”",
        "\u200fcomplexity: simple\u200f",
        "【complexity】\uff1asimple",
    ],
)
def test_marks_around_keys_and_values_are_stripped(line: str) -> None:
    for text in (f"---\n{line}\n---\nHi.", f"{line}\n\nHi."):
        assert fields(text) == {"complexity": "simple"}
        assert body(text) == "Hi."


def test_marks_inside_a_value_stay() -> None:
    assert fields("---\nreasoning: **A** and **B**\n---")["reasoning"] == "**A** and **B**"


@pytest.mark.parametrize(
    "text",
    [
        "1. Feedback: collect it @a\n2. Update: write it @b",
        "# Feedback: what we learned\n\nMuch.",
        "- Score: 3 to 1\n- Goals: 4",
        "Decision: option A\n\nBecause.",
        "| Update | Date |\n|---|---|\n| one | 2026 |",
        "complexity is high here",
    ],
)
def test_a_text_that_begins_almost_like_a_key_is_a_text(text: str) -> None:
    reply = read_reply(text, HOST_KEYS)
    assert not reply.fields
    assert reply.body == text


def test_keys_of_another_node_are_no_keys() -> None:
    assert not read_reply("verdict: complete\n\nHi.", THINK_KEYS).fields
    assert not read_reply("complexity: simple\n\nHi.", FEEDBACK_KEYS).fields


def test_a_code_block_in_another_language_is_an_answer_not_a_wrapper() -> None:
    text = "```python\ncomplexity = simple\n```"
    assert body(text) == text
    assert fields(text) == {}


def test_text_after_the_fence_around_a_reply_is_kept() -> None:
    text = "```markdown\n---\ncomplexity: simple\n---\nLima.\n```\nThat is in Peru."
    assert body(text) == "Lima.\n\nThat is in Peru."


def test_a_code_block_after_the_fence_does_not_belong_into_it() -> None:
    text = "```yaml\n---\ncomplexity: simple\n---\nRun:\n```\n```bash\nls\n```"
    assert body(text) == "Run:\n\n```bash\nls\n```"


def test_talk_before_a_front_matter_is_dropped_and_an_answer_before_it_is_not() -> None:
    assert body("Here it is:\n---\ncomplexity: simple\n---\nLima.") == "Lima."
    assert body("Lima.\n\n---\ncomplexity: simple\n---\n") == "Lima."
    assert body("Here it is:\n\n---\ncomplexity: simple\n---\n") == ""


def test_rules_in_a_long_answer_are_no_front_matter() -> None:
    text = "One.\n\nTwo.\n\nThree.\n\n---\nFeedback: it was good.\n---\n\nFour."
    assert read_reply(text, FEEDBACK_KEYS).body == text


def test_thinking_is_dropped_before_a_reply_only() -> None:
    assert body("<think>a</think>\n\nLima.") == "Lima."
    assert body("Lima. <think>a</think>") == "Lima. <think>a</think>"
    assert body("Use `</think>` at the end of it.") == "Use `</think>` at the end of it."


def test_a_reply_with_crlf_is_read_as_with_lf() -> None:
    text = "---\ncomplexity: simple\n---\n\nOne.\n\nTwo.\n"
    assert read_reply(text.replace("\n", "\r\n"), THINK_KEYS) == read_reply(text, THINK_KEYS)


def test_half_characters_are_replaced() -> None:
    assert (
        body('{"complexity": "simple", "answer": "a\\ud83d\\ude00b\\ud83d"}')
        == "a\U0001f600b\ufffd"
    )
    assert body("a\ud800") == "a\ufffd"


def test_json_values_become_text() -> None:
    text = (
        '{"complexity": "simple", "score": 0.25, "reasoning": {"why": ["a", 1]}, "feedback": null}'
    )
    assert fields(text) == {
        "complexity": "simple",
        "score": "0.25",
        "reasoning": '{"why": ["a", 1]}',
        "feedback": "",
    }


def test_of_an_answer_and_a_plan_the_wanted_one_is_the_body() -> None:
    both = '"answer": "I will plan.", "plan": ["Look"]}'
    assert body('{"complexity": "complex", ' + both) == '["Look"]'
    assert body('{"complexity": "simple", ' + both) == "I will plan."


def test_an_empty_object_is_an_empty_reply() -> None:
    assert body("{}") == ""


def test_a_set_in_braces_is_no_object() -> None:
    text = "The set {1, 2} has two members."
    assert body(text) == text


@pytest.mark.parametrize(
    "text",
    [
        '{"complexity": "simple", "answer": [1, 2',
        '{"complexity": "simple", "answer": {"a": [1}, "x": ]]]}}',
        "{'complexity': 'simple', 'answer': None, 'x': [}",
        '[{"complexity": "simple", 1: 2, "": {}}',
        '{"complexity": "simple" "score" 3 : }',
        '{"a": ' * 200 + '{"complexity": "simple"}',
        '{"complexity": ' + "[" * 100_000,
        '{"complexity": 1' + "0" * 5_000 + "}",
    ],
)
def test_broken_json_is_read_as_far_as_it_goes(text: str) -> None:
    assert read_reply(text, THINK_KEYS).fields.get("complexity", "simple") is not None


def test_lines_of_markdown_in_a_list_of_json_are_text_and_not_entries() -> None:
    text = '{"complexity": "simple", "answer": ["# Report", "", "It is so."]}'
    assert body(text) == "# Report\n\nIt is so."


def test_front_matter_that_is_written_twice_is_no_part_of_the_body() -> None:
    reply = read_reply("---\ncomplexity: simple\n---\n---\nscore: 0.1\n---\nHi.\n", THINK_KEYS)
    assert (reply.fields, reply.body) == ({"complexity": "simple", "score": "0.1"}, "Hi.")


def test_a_reply_is_cut_off_if_it_ends_within_a_code_block() -> None:
    assert is_unfinished("It is:\n\n```python\ndef area(side):\n    return side *")
    assert not is_unfinished("It is:\n\n```python\ndef area(side):\n    return side\n```")
    assert not is_unfinished("It is side times")
