"""Reading is total and quick, whatever a model writes, and a body that streams is the body."""

import time
from itertools import pairwise

import pytest
from hypothesis import assume, example, given, strategies as st
from reply_corpus import load

from replan.prompts.replies.body_stream import BodyStream
from replan.prompts.replies.keys import HOST, THINK
from replan.prompts.replies.readings import read_answer, read_feedback, read_specialist, read_think
from replan.prompts.replies.reply import read_reply
from replan.prompts.replies.wrapping import BLANK, behind_thoughts, unwrapped

TEXTS = [case.text for node in ("think", "feedback", "specialist") for case in load(node)]
PIECES = [
    *(
        "---",
        "\n",
        "\r\n",
        "\n\n",
        "```",
        "```markdown",
        "~~~",
        "`",
        "{",
        "}",
        "[",
        "]",
        ":",
        "=",
        "|",
    ),
    *("<think>", "</think>", "<answer>", "complexity", "complexity: simple", "score: 0.9", "***"),
    *("verdict: complete", "feedback: well", "status: failed", "plan: |", "answer:"),
    *("reasoning: because", "x: y", "text", " ", "\t", "\u200b", "\ufeff", "\x00", "\r", "\ud800"),
    *('"', "'", "\\", "\\n", "# heading", "\x1c", "\u2028", "- [ ] 1. a @b"),
    '{"complexity": "simple", "answer": "a"}',
]

anything = st.text(alphabet=st.characters(codec=None), max_size=200)


pieces = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


@st.composite
def mutations(draw: st.DrawFn) -> str:
    """A reply of the corpus, cut off, with pieces put in and characters left out."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        gone = draw(st.integers(0, 5))
        text = text[:at] + draw(st.sampled_from(PIECES)) + text[at + gone :]
    return text[: draw(st.integers(0, len(text)))] if draw(st.booleans()) else text


@st.composite
def streamed(draw: st.DrawFn) -> str:
    """A reply in the plain form, more or less."""
    before = draw(
        st.sampled_from(["", "\n", "\ufeff", "<think>a\nb</think>", "<think>x</think>\r\n", " \n"])
    )
    fence = draw(st.sampled_from(["---", "---\r", "----", "***"]))
    header = draw(st.lists(st.sampled_from(PIECES), max_size=4).map("\n".join))
    body = draw(st.one_of(pieces, anything))
    return f"{before}{fence}\ncomplexity: simple\n{header}\n{fence}\n{body}"


def chunked(text: str, cuts: list[int]) -> list[str]:
    places = sorted({cut % (len(text) + 1) for cut in cuts} | {0, len(text)})
    return [text[a:b] for a, b in pairwise(places)]


@given(st.one_of(anything, pieces, mutations()))
def test_any_text_is_read_with_the_keys_that_are_known_and_a_body_without_blanks(text: str) -> None:
    for read in (read_think, read_feedback, read_specialist, read_answer):
        read(text)
    for keys in ({}, THINK):
        reply = read_reply(text, keys)
        assert set(reply.fields) <= {key.name for key in keys.values()}
        assert reply.body == reply.body.rstrip(BLANK)


@given(
    st.one_of(streamed(), mutations(), pieces),
    st.lists(st.integers(0, 2000), max_size=20),
)
@example("---\ncomplexity: simple\n\n---\n--- ---", [])
@example("---\ncomplexity: simple\n---\n===\n~~ ==\n", [])
def test_what_streams_is_how_the_body_begins_however_it_is_cut(text: str, cuts: list[int]) -> None:
    reply = read_reply(text, HOST)
    outcomes = set[bool]()
    for chunks in (chunked(text, cuts), list(text), [text]):
        stream = BodyStream()
        shown = "".join(stream.feed(chunk) for chunk in chunks)
        outcomes.add(stream.is_streaming)
        if stream.is_streaming:
            assert reply.body.startswith(shown)
            assert stream.fields == reply.fields
        else:
            assert shown == ""
            assert stream.fields is None
    assert len(outcomes) == 1


@given(
    st.one_of(anything, pieces, mutations()),
    st.lists(st.integers(0, 2000), max_size=20),
)
def test_what_streams_of_an_answer_is_how_it_begins_however_it_is_cut(
    text: str, cuts: list[int]
) -> None:
    # Thoughts whose opening tag the server left out are known by their end alone.
    assume(behind_thoughts(unwrapped(text)) == unwrapped(text))
    shown = {
        "".join(map(BodyStream(None).feed, chunks)) for chunks in (chunked(text, cuts), list(text))
    }
    assert all(read_answer(text).body.startswith(each) for each in shown)


HUGE = {
    "an answer": "---\ncomplexity: simple\n---\n" + "a word or two \n" * 68_000,
    "an answer in a fence": "```markdown\n---\ncomplexity: simple\n---\n"
    + "word\n" * 180_000
    + "```",
    "json": '{"complexity": "simple", "answer": "' + "word\\n" * 160_000 + '"}',
    "cut off json": "{'complexity': 'simple', 'answer': '" + "it's \\'so\\' " * 80_000,
    "fences": "```\n" * 240_000,
    "delimiters": "---\n" * 240_000,
    "keys": "complexity: x\n" * 70_000,
    "header without end": "---\ncomplexity: simple\n" + "reasoning: more\n" * 60_000,
    "thinking": "<think></think>" * 66_000,
    "opened thinking": "<think>" * 140_000,
    "blanks": " " * 1_000_000,
    "braces": '{"a":' * 200_000,
    "brackets": "[" * 1_000_000,
    "quotes": '{"complexity": "' + '"' * 1_000_000,
    "backslashes": '{"a":"' + "\\" * 1_000_000,
    "nested fences": "```yaml\n~~~\n````\n" * 60_000,
    "bullets": "- " * 500_000,
    "tags": "<complexity>" * 80_000,
    "nothing special": "a" * 1_000_000,
}


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE.keys())
def test_a_huge_reply_is_read_in_a_moment(text: str) -> None:
    start = time.process_time()
    read_reply(text, HOST)
    # About a tenth of it is usual; a reader that is not linear takes minutes.
    assert time.process_time() - start < 8


def test_a_huge_reply_streams_in_a_moment() -> None:
    thinking = "<think>\n" + "word\n" * 20_000 + "</think>\n"
    text = (
        thinking
        + "---\ncomplexity: simple\nreasoning: "
        + "r" * 10_000
        + "\n---\n"
        + " `\n word" * 5_000
    )
    start = time.process_time()
    stream = BodyStream()
    shown = "".join(map(stream.feed, [thinking, *text.removeprefix(thinking)]))
    assert read_reply(text, HOST).body.startswith(shown)
    assert time.process_time() - start < 8
