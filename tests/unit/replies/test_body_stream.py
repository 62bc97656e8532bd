"""A body is shown as it arrives, and nothing of the front matter with it."""

from replan.prompts.replies.body_stream import BodyStream

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


def test_behind_a_very_long_front_matter_nothing_is_shown() -> None:
    text = "---\n" + "x\n" * 500 + "complexity: simple\n---\nLima."
    for parts in ([text], list(text)):
        stream = BodyStream()
        assert "".join(map(stream.feed, parts)) == ""
        assert not stream.is_streaming
        assert stream.fields is None
