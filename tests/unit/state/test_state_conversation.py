"""The conversation: a message gets an id that every replay of its writes gives it again."""

import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import InvalidUpdateError
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Overwrite

from replan.state.channels import conversation
from replan.state.enhanced import GraphInput

TEXTS = st.text(max_size=6)
RAW = st.one_of(
    TEXTS,
    st.tuples(st.sampled_from(["user", "assistant"]), TEXTS),
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": TEXTS}),
    st.builds(HumanMessage, TEXTS, id=st.sampled_from(["x", "y", "z"])),
)
WRITES = st.lists(RAW | st.lists(RAW, max_size=1), max_size=8)


@given(WRITES, st.integers(0, 8))
def test_messages_do_not_depend_on_how_writes_are_batched(writes, cut):
    parts = conversation(conversation([], writes[:cut]), writes[cut:])
    assert parts == conversation([], writes)


@given(WRITES)
def test_no_two_messages_share_an_id(writes):
    ids = [message.id for message in conversation([], writes)]
    assert None not in ids
    assert len(set(ids)) == len(ids)


def test_a_text_said_twice_is_two_messages():
    messages = conversation([], [["yes", "yes"], "yes"])
    assert [message.text for message in messages] == ["yes"] * 3


def test_a_message_with_a_known_id_takes_the_place_of_the_older_one():
    first = conversation([], ["hello"])
    assert conversation(first, [HumanMessage("bye", id=first[0].id)])[0].text == "bye"


def test_a_chunk_becomes_a_whole_message():
    assert type(conversation([], [AIMessageChunk("Hi.", id="1")])[0]) is AIMessage


@pytest.mark.parametrize("write", [5, None, [7], [{"content": 1}], [["user"]], [{"role": "?"}]])
def test_what_is_no_message_is_refused_by_the_name_of_the_key(write):
    with pytest.raises(InvalidUpdateError, match="'messages'"):
        conversation([], [write])


def test_a_message_object_without_an_id_gets_the_id_of_its_place_and_stays_as_it_was():
    given_twice = HumanMessage("hello")
    assert conversation([], [given_twice]) == conversation([], [HumanMessage("hello")])
    assert given_twice.id is None


def test_a_message_can_be_removed_by_its_id():
    messages = conversation([], ["one", "two"])
    left = conversation(messages, [[RemoveMessage(id=messages[0].id)]])
    assert [message.text for message in left] == ["two"]


def test_all_messages_can_be_removed_and_others_put_in_their_place():
    write = [RemoveMessage(id=REMOVE_ALL_MESSAGES), ("user", "new")]
    assert [m.text for m in conversation(conversation([], ["old"]), [write])] == ["new"]


def test_of_two_messages_with_one_id_in_one_write_the_later_counts():
    write = [HumanMessage("one", id="1"), HumanMessage("two", id="1")]
    assert [message.text for message in conversation([], [write])] == ["two"]


def test_ids_that_ran_their_place_do_not_collide_after_the_conversation_was_cut():
    kept = conversation([], ["one", "yes"])[1:]
    after = conversation(kept, ["yes"])
    assert [message.text for message in after] == ["yes", "yes"]


def thread():
    graph = StateGraph(GraphInput)
    graph.add_node("say", lambda _: {"messages": [AIMessage("Hm.")]})
    graph.add_edge(START, "say")
    graph.add_edge("say", END)
    return graph.compile(checkpointer=InMemorySaver()), {"configurable": {"thread_id": "t"}}


async def test_a_thread_gives_the_same_ids_each_time_it_is_read():
    graph, config = thread()
    given_ = {"messages": [("user", "a"), {"role": "user", "content": "b"}, HumanMessage("c")]}
    state = await graph.ainvoke(given_, config)
    for _ in range(2):
        assert (await graph.aget_state(config)).values["messages"] == state["messages"]


async def test_an_overwrite_of_the_conversation_is_converted():
    graph, config = thread()
    await graph.ainvoke({"messages": [("user", "a")]}, config)
    await graph.aupdate_state(config, {"messages": Overwrite([("user", "b")])})
    messages = (await graph.aget_state(config)).values["messages"]
    assert [message.text for message in messages] == ["b"]


async def test_a_wrong_overwrite_of_the_conversation_is_refused_and_the_thread_lives_on():
    graph, config = thread()
    await graph.ainvoke({"messages": [("user", "a")]}, config)
    with pytest.raises(InvalidUpdateError, match="'messages'"):
        await graph.aupdate_state(config, {"messages": Overwrite(5)})
    state = await graph.ainvoke({"messages": [("user", "b")]}, config)
    assert [message.text for message in state["messages"]] == ["a", "Hm.", "b", "Hm."]
