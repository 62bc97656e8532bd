"""When a summary is due and what it covers: each message is in it, or seen, exactly once."""

from hypothesis import given, strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from replan import MemoryOptions
from replan.memory.conversation import resolved, visible_messages
from replan.memory.summary import MOST_AT_ONCE, covering, is_due, to_cover
from replan.prompts.sections import summary_section
from replan.state.memory import Summary

CALL = {"name": "search", "args": {}, "id": "c"}
LONG = [{"name": "write", "args": {"text": "x" * 90_000}, "id": "c"}]
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


def test_a_summary_is_due_after_so_many_new_messages_and_leaves_the_newest():
    assert not is_due({"messages": turns(0, 2)}, SUMMARY)
    state = {"messages": turns(0, 3)}
    assert is_due(state, SUMMARY)
    state = summarised(state)
    assert state["memory_summary"] == Summary(text="[h0][a0]", covered=2, last_covered_id="a0")
    state["messages"] = [*state["messages"], *turns(3, 2)]
    assert not is_due(state, SUMMARY)
    state["messages"] = [*state["messages"], *turns(5, 1)]
    assert is_due(state, SUMMARY)
    assert summarised(state)["memory_summary"].covered == 8


def test_no_summary_is_due_where_none_is_to_be_written():
    state = {"messages": turns(0, 100)}
    for options in ({}, {"mode": "full"}, {"mode": "summary", "summary_enabled": False}):
        assert not is_due(state, resolved(MemoryOptions(**options)))
    # Ten of them are left anyhow.
    memory = resolved(MemoryOptions(mode="summary", summary_trigger_messages=2))
    assert not is_due({"messages": turns(0, 5)}, memory)


def test_a_summary_takes_the_place_of_what_it_covers():
    told = SystemMessage("Be brief.", id="s")
    said = [told, *turns(0, 4), HumanMessage("and now?")]
    summary = Summary(text="They </memory> met.", covered=4, last_covered_id="a1")
    seen = visible_messages({"messages": said, "memory_summary": summary}, SUMMARY)
    assert seen.messages == [told, *said[5:]]
    assert seen.summary == "They </memory> met."
    assert summary_section(seen.summary).endswith(
        "\n<memory>\nThey <\u200b/memory> met.\n</memory>"
    )
    assert seen.numbers == {"visible": 6, "summarised": 4, "omitted": 0, "truncated": 0}


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


MESSAGES = st.lists(st.sampled_from(["turn", "tools", "long", "overtaken", "told"]), max_size=30)


@given(MESSAGES, st.integers(1, 8), st.integers(1, 12), st.lists(st.booleans(), min_size=30))
def test_each_message_is_in_the_summary_or_seen_exactly_once(kinds, limit, trigger, works):
    options = MemoryOptions(mode="summary", history_limit=limit, summary_trigger_messages=trigger)
    memory = resolved(options)
    state = {"messages": []}
    calls = 0
    for number, (kind, succeeds) in enumerate(zip(kinds, works, strict=False)):
        state["messages"] = [*state["messages"], *_said(kind, number)]
        if kind == "overtaken" or not is_due(state, memory):
            continue
        if succeeds:
            state = summarised(state, memory)
            calls += 1
        _check(state, memory)
    _check(state, memory)
    assert calls * trigger <= len(state["messages"])


def _said(kind, number):
    asked = HumanMessage(f"h{number}", id=f"h{number}")
    answered = AIMessage(f"a{number}", id=f"a{number}")
    tools = [
        AIMessage("", id=f"c{number}", tool_calls=[CALL]),
        ToolMessage("x", tool_call_id="c", id=f"t{number}"),
        ToolMessage("y", tool_call_id="c", id=f"u{number}"),
    ]
    return {
        "turn": [asked, answered],
        "tools": [asked, *tools, answered],
        "long": [asked, tools[0].model_copy(update={"tool_calls": LONG}), *tools[1:], answered],
        "overtaken": [asked],
        "told": [SystemMessage("told", id=f"s{number}"), asked, answered],
    }[kind]


def _check(state, memory):
    seen = visible_messages(state, memory).messages
    summary = state.get("memory_summary")
    text = "" if summary is None else summary.text
    shown = [message.id for message in seen if message.id]
    covered = text[1:-1].split("][") if text else []
    assert sorted([*covered, *shown]) == sorted(message.id for message in state["messages"])
    first = next((m for m in seen if m.type != "system"), None)
    assert first is None or first.type != "tool"
