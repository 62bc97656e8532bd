"""What the graph is given of a history is what models see of the whole one."""

from dataclasses import replace

from hypothesis import given, strategies as st

from replan.sessions.history import message_of, visible_part, whole_summary
from replan.state.conversation.conversation import MemoryPolicy, visible_messages
from replan.state.options import Summary
from replan.state.session.context import Message

NOON = "2026-03-01T12:00:00+00:00"

histories = st.lists(
    st.builds(
        Message,
        role=st.sampled_from(["user", "assistant", "user", "assistant", "system"]),
        content=st.sampled_from(["short", "long " * 2_000, "longer than any window " * 2_000]),
        timestamp=st.just(NOON),
    ),
    max_size=14,
).map(tuple)
memories = st.builds(
    MemoryPolicy,
    mode=st.sampled_from(["full", "window", "summary"]),
    limit=st.integers(0, 8),
    writes=st.just(value=True),
    trigger=st.just(6),
    max_tokens=st.just(100),
    model=st.just(""),
).map(lambda memory: replace(memory, limit=0) if memory.mode == "full" else memory)


def instructions(history):
    """The system messages that a history begins with, up to its last reply."""
    end = max((at for at, each in enumerate(history, 1) if each.role == "assistant"), default=0)
    return next((at for at in range(end) if history[at].role != "system"), end), end


@given(histories, st.lists(memories, min_size=1, max_size=3), st.integers(1, 14))
def test_who_sees_what_the_graph_was_given_sees_what_he_would_see_of_all(history, seen_by, place):
    start, end = instructions(history)
    summary = None
    if place <= end - start:
        name = f"m{start + place - 1}"
        summary = Summary(text="They spoke.", covered=place, last_covered_id=name)
    request = message_of("user", "And now?", len(history))
    whole = [*(message_of(each.role, each.content, at) for at, each in enumerate(history)), request]
    shown = visible_part(history, summary, seen_by)
    for memory in seen_by:
        of_all = visible_messages({"messages": whole, "memory_summary": summary}, memory)
        of_shown = visible_messages(
            {"messages": [*shown.messages, request], "memory_summary": shown.summary}, memory
        )
        assert of_shown.messages == of_all.messages
        # Nobody is told that less was left out than was.
        lacking = of_shown.omitted + of_shown.summarised
        if lacking:
            assert lacking + shown.held_back == of_all.omitted + of_all.summarised
        else:
            assert shown.held_back == 0 or memory.mode == "summary"


@given(histories, st.lists(memories, min_size=1, max_size=3), st.integers(1, 14))
def test_the_summary_of_what_was_shown_is_that_of_the_history_again(history, seen_by, place):
    start, end = instructions(history)
    if place > end - start:
        return
    name = f"m{start + place - 1}"
    summary = Summary(text="They spoke.", covered=place, last_covered_id=name)
    shown = visible_part(history, summary, seen_by).summary
    assert shown is None or whole_summary(history, shown) == summary
