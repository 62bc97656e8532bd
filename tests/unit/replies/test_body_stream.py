"""A body is shown as it arrives, and nothing of the front matter with it."""

import pytest

from replan.replies.body_stream import BodyStream
from replan.replies.readings import read_answer

HEAD = "---\ncomplexity: simple\nreasoning: known\n---\n"


def test_nothing_is_shown_before_the_first_text_of_the_body() -> None:
    stream = BodyStream()
    assert [stream.feed(part) for part in ("---\ncomplex", "ity: simple\n--", "-\n", "\n  \n")] == [
        ""
    ] * 4
    assert stream.fields is None
    assert stream.feed("Li") == "Li"
    assert stream.fields == {"complexity": "simple"}
    assert stream.is_streaming


def test_blanks_at_the_end_are_held_back_until_more_comes() -> None:
    stream = BodyStream()
    assert stream.feed(HEAD + "One.\n") == "One."
    assert stream.feed("\n\r") == ""
    assert stream.feed("\nTwo. ") == "\n\n\nTwo."


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Lima.\r\nIn Peru.</s>\n", "Lima.\nIn Peru."),
        ("Score of the match: 3 to 1.", "Score of the match: 3 to 1."),
        ("Complex numbers have two parts.", "Complex numbers have two parts."),
        *((f"{HEAD}Lima.", ""), ("complexity: simple\n\nLima.", ""), ("**Verdict**: complete", "")),
        *(('{"complexity": "simple", "answer": "Lima."}', ""), ("<think>Hm.</think>Lima.", "")),
        *(("~~~md\nLima.\n~~~", ""), ("compl", "")),
    ],
)
def test_a_reply_without_keys_is_shown_at_once_unless_it_may_begin_with_some(text, shown) -> None:
    for parts in ([text], list(text)):
        assert "".join(map(BodyStream(None).feed, parts)) == shown
        assert read_answer(text).body.startswith(shown)


@pytest.mark.parametrize(
    "text",
    [
        "Lima.",
        "complexity: simple\n\nLima.",
        "```markdown\n" + HEAD + "Lima.\n```",
        '{"complexity": "simple", "answer": "Lima."}',
        "Sure:\n" + HEAD + "Lima.",
        "<think>" + HEAD + "Lima.",
        "---\nmood: good\n---\nLima.",
        "---\ncomplexity: simple\n\nLima.\n\n---\n\nMore.",
        "---\ncomplexity: simple\nanswer: Lima.\n---\nMore.",
        HEAD + "```markdown\nLima.\n```",
        HEAD,
        HEAD + "\n \n",
        HEAD + "``",
        "---\n" + "x\n" * 500 + "complexity: simple\n---\nLima.",
        "",
    ],
)
def test_any_other_form_is_held_back(text: str) -> None:
    for parts in ([text], list(text)):
        stream = BodyStream()
        assert "".join(map(stream.feed, parts)) == ""
        assert not stream.is_streaming
        assert stream.fields is None


@pytest.mark.parametrize(
    ("before", "body", "shown"),
    [
        ("", "Lima.</s>", "Lima."),
        ("", "Lima.\n<|im_end|>", "Lima."),
        ("", "Lima [1] < Cusco.", "Lima [1] < Cusco."),
        ("", "Lima: <|b|> is a token.", "Lima: <|b|> is a token."),
        ("", "One.\n---\nverdict: complete\n---\n.", "One.\n---\nverdict: complete\n---\n."),
        ("<think>complexity: complex\n---\n</think>\n", "Hi", "Hi"),
    ],
)
def test_only_the_body_is_shown_without_thoughts_and_tokens(before, body, shown) -> None:
    text = f"{before}{HEAD}{body}"
    for parts in ([text], list(text)):
        assert "".join(map(BodyStream().feed, parts)) == shown
