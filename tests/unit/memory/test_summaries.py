"""When a summary is due and what it covers: each message is in it, or seen, exactly once."""

from langchain_core.messages import AIMessage, HumanMessage

from replan import MemoryOptions
from replan.state.conversation.conversation import (
    MOST_AT_ONCE,
    covering,
    is_due,
    resolved,
    to_cover,
    visible_messages,
)
from replan.state.options import Summary

SUMMARY = resolved(MemoryOptions(mode="summary", history_limit=4, summary_trigger_messages=6))


def turns(first, count, text=""):
    return [
        message
        for turn in range(first, first + count)
        for message in (
            HumanMessage(f"ask {turn}{text}", id=f"h{turn}"),
            AIMessage(f"reply {turn}{text}", id=f"a{turn}"),
        )
    ]


def summarised(state, memory=SUMMARY):
    """The state after a summary that is due."""
    before, added = to_cover(state, memory)
    text = before + "".join(f"[{message.id}]" for message in added)
    return {**state, "memory_summary": covering(state, added, text)}


def test_no_summary_is_due_where_none_is_to_be_written():
    state = {"messages": turns(0, 100)}
    for options in ({}, {"mode": "full"}, {"mode": "summary", "summary_enabled": False}):
        assert not is_due(state, resolved(MemoryOptions(**options)))
    # Ten of them are left anyhow.
    memory = resolved(MemoryOptions(mode="summary", summary_trigger_messages=2))
    assert not is_due({"messages": turns(0, 5)}, memory)


def test_a_summary_of_messages_that_were_taken_away_does_not_count():
    said = turns(0, 4)
    summary = Summary(text="They met.", covered=4, last_covered_id="a1")
    for left in (said[1:], [*said[:3], *said[4:]], said[:2]):
        seen = visible_messages({"messages": left, "memory_summary": summary}, SUMMARY)
        assert seen.messages == left
    before, added = to_cover({"messages": said[1:], "memory_summary": summary}, SUMMARY)
    assert (before, len(added)) == ("", 3)


def test_of_a_very_long_conversation_a_summary_takes_in_what_fits():
    state = {"messages": turns(0, 200, " word" * 500)}
    _, added = to_cover(state, SUMMARY)
    assert 0 < sum(len(message.text) for message in added) <= MOST_AT_ONCE
    state = summarised(state)
    assert is_due(state, SUMMARY)
