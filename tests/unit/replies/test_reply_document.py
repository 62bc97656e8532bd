"""The rules of the reply format, one by one."""

import pytest

from replan.replies.keys import FEEDBACK, HOST, THINK
from replan.replies.reply import read_reply
from replan.replies.unfinished import is_unfinished


def fields(text):
    return read_reply(text, HOST).fields


def body(text):
    return read_reply(text, HOST).body


def problem(text):
    return read_reply(text, HOST).problem


def test_front_matter_stands_between_the_first_line_and_the_next_delimiter():
    reply = read_reply("---\ncomplexity: simple\nscore: 0.1\n---\nHi.\n", THINK)
    assert reply.fields == {"complexity": "simple", "score": "0.1"}
    assert reply.body == "Hi."


def test_without_delimiters_it_is_the_leading_lines_with_a_label():
    text = "complexity: simple\nscore: 0.1\nHi.\nscore: 3"
    assert fields(text) == {"complexity": "simple", "score": "0.1"}
    assert body(text) == "Hi.\nscore: 3"
    assert fields("feedback: it was good\n\nHi.") == {}


@pytest.mark.parametrize(
    "text",
    [
        "complexity: simple\n\nreasoning: why not",
        "complexity: simple\nmood: good\n\nHi.",
        "complexity: simple\nanswer: Lima.",
        "---\ncomplexity: simple\n\nHello.\n\n---\n\nBye.",
        "---\ncomplexity: simple\nreasoning: known\nLima.\n---\n",
        "---\ncomplexity: simple\nanswer: Lima.\n---\nIt lies in Peru.",
        "---\ncomplexity: simple\ncomplexity: complex\n---\nHi.",
        "---\ncomplexity: simple\n---\n---\nscore: 0.1\n---\nHi.\n",
        '{"complexity": "simple", "answer": "Lima."} That is it.',
        '{"complexity": "simple", "answer": "Lima.", "plan": "- [ ] 1. Look"}',
        '{"complexity": "complex", "plan": [{"id": 1, "task": "Look"}]}',
        '{"complexity": "simple", "answer": "Lima.',
        '{"complexity": "simple", "complexity": "complex", "answer": "Lima."}',
        "{'complexity': 'simple', 'answer': \"complexity\"}",
    ],
)
def test_what_may_be_a_key_or_text_is_a_problem(text):
    assert problem(text) or not fields(text)


def test_an_indented_line_continues_the_value_above():
    text = "complexity: simple\nreasoning: >\n  One.\n  Two.\n\nHi."
    assert fields(text)["reasoning"] == "One.\nTwo."
    assert body(text) == "Hi."
    assert fields(f"---\n{text.replace('Hi.', '---')}")["reasoning"] == "One.\nTwo."


def test_an_unknown_key_and_a_value_that_does_not_fit_are_told():
    reply = read_reply("---\ncomplexity: simple\nmood: good\nscore: high\n---\nHi.", HOST)
    assert (reply.fields, reply.body) == ({"complexity": "simple"}, "Hi.")
    assert reply.odd == {"mood": "good", "score": "high"}
    assert not reply.problem


def test_free_text_said_twice_is_kept_twice():
    text = "---\nfeedback: one\nverdict: complete\nfeedback: two\n---"
    assert fields(text)["feedback"] == "one\ntwo"


@pytest.mark.parametrize(
    "line",
    [
        *("**complexity**: simple", "**complexity:** simple", "**complexity: simple**"),
        *("__Complexity__: simple", "`complexity`: `simple`", "`complexity: simple`"),
        *('"complexity": "simple",', "'complexity': 'simple'", "- complexity: simple"),
        *("* **complexity**: simple", "> complexity: simple", "  COMPLEXITY:simple"),
        *("complexity\uff1asimple", "复杂度: 简单", "complexity: Simple.", "complexity: easy"),
    ],
)
def test_marks_around_keys_and_values_are_stripped(line):
    for text in (f"---\n{line}\n---\nHi.", f"{line}\n\nHi."):
        assert fields(text) == {"complexity": "simple"}
        assert body(text) == "Hi."


def test_marks_inside_a_value_stay():
    assert fields("---\nreasoning: **A** and **B**\n---")["reasoning"] == "**A** and **B**"


@pytest.mark.parametrize(
    "text",
    [
        *("1. Feedback: collect it @a\n2. Update: write it @b", "- Score: 3 to 1\n- Goals: 4"),
        *("# Feedback: what we learned\n\nMuch.", "Decision: option A\n\nBecause."),
        *("Here it is:\n---\ncomplexity: simple\n---\nLima.", "complexity is high here"),
        *("One.\n\n---\nverdict: complete\n---\n\nTwo.", '["a"]', "{}", "The set {1, 2}."),
        *("```python\ncomplexity = simple\n```", '{"name": "x", "answer": 3}'),
    ],
)
def test_a_text_without_its_keys_at_the_beginning_is_a_text(text):
    reply = read_reply(text, HOST)
    assert (dict(reply.fields), reply.body) == ({}, text)


def test_keys_of_another_node_are_no_keys():
    assert not read_reply("verdict: complete\n\nHi.", THINK).fields
    assert not read_reply("complexity: simple\n\nHi.", FEEDBACK).fields


def test_one_fence_may_be_around_it_all_or_around_the_keys():
    inner = "---\ncomplexity: simple\n---\nRun:\n```bash\nls\n```"
    assert body(f"````markdown\n{inner}\n````") == "Run:\n```bash\nls\n```"
    assert body(f"```\n{inner}\n```") == "Run:\n```bash\nls\n```"
    assert body("```yaml\ncomplexity: simple\n```\n\nLima.") == "Lima."
    assert fields("```markdown\n---\ncomplexity: simple\n---\nLima.\n```\nIn Peru.") == {}


def test_a_body_that_is_one_block_of_markdown_is_unwrapped_and_other_code_is_not():
    head = "---\ncomplexity: simple\n---\n"
    assert body(f"{head}```markdown\n# It\n```") == "# It"
    assert body(f"{head}```python\nx\n```") == "```python\nx\n```"


@pytest.mark.parametrize(
    "thought",
    [
        *("<think>a\n---\nb</think>", "<thinking>\na</thinking>\n", "[THINK]a[/THINK]"),
        *("◁think▷a◁/think▷", "a\n</think>\n", "<think>a</think><reasoning>b</reasoning>"),
        "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>",
    ],
)
@pytest.mark.parametrize("text", ["Lima.", "---\ncomplexity: simple\n---\nLima."])
def test_thoughts_before_a_reply_are_dropped(thought, text):
    assert body(f"{thought}\n{text}") == "Lima."


@pytest.mark.parametrize(
    "text",
    [
        *("Lima. <think>a</think>", "Use `</think>` at the end of it.", "Write `</s>` there."),
        *("The tag <think> opens thoughts.", "```xml\n<think>\n```", "a <|b|> c"),
    ],
)
def test_an_answer_may_speak_of_tags_and_tokens(text):
    assert body(text) == text
    assert body(f"---\ncomplexity: simple\n---\n{text}") == text


@pytest.mark.parametrize("text", ["<|channel|>analysis<|message|>hm", "<think>hm", "</s>"])
def test_thoughts_and_tokens_alone_are_nothing(text):
    assert body(text) == ""


@pytest.mark.parametrize("end", ["</s>", "<|im_end|>", "\n<|eot_id|>\n", "<end_of_turn></s>"])
def test_tokens_that_end_a_reply_are_dropped(end):
    assert body(f"---\ncomplexity: simple\n---\nLima.{end}") == "Lima."


def test_a_reply_with_crlf_is_read_as_with_lf():
    text = "---\ncomplexity: simple\n---\n\nOne.\n\nTwo.\n"
    assert read_reply(text.replace("\n", "\r\n"), THINK) == read_reply(text, THINK)


def test_half_characters_are_replaced():
    text = '{"complexity": "simple", "answer": "a\\ud83d\\ude00b\\ud83d"}'
    assert body(text) == "a\U0001f600b\ufffd"
    assert body("a\ud800") == "a\ufffd"


def test_json_values_become_text():
    values = '"score": 0.25, "reasoning": {"why": ["a", 1]}, "feedback": null'
    assert fields(f'{{"complexity": "simple", {values}}}') == {
        "complexity": "simple",
        "score": "0.25",
        "reasoning": '{"why": ["a", 1]}',
        "feedback": "",
    }


def test_a_reply_is_cut_off_if_it_ends_within_a_code_block():
    assert is_unfinished("It is:\n\n```python\ndef area(side):\n    return side *")
    assert not is_unfinished("It is:\n\n```python\ndef area(side):\n    return side\n```")
    assert not is_unfinished("It is side times")
