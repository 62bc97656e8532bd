"""Whatever messages a prompt is made of, it is sent in the order that every server takes."""

from hypothesis import given, strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from replan.prompts.sections import TASK, in_order
from replan.testing.wire import Capabilities

ASKED, SAID, TOLD = HumanMessage("ask"), AIMessage("reply"), SystemMessage("told")
PICTURE = {"type": "image_url", "image_url": {"url": "data:,x"}}


def calls(*ids):
    return AIMessage("", tool_calls=[{"name": "search", "args": {}, "id": each} for each in ids])


def found(id_):
    return ToolMessage("found", tool_call_id=id_)


def shown(messages):
    return [(message.type, message.text) for message in in_order(messages)]


def test_neighbours_of_one_role_become_one_message():
    said = [TOLD, ASKED, HumanMessage(""), HumanMessage("more"), SAID, calls("a"), found("a")]
    assert shown(said)[1:] == [("human", "ask\n\nmore"), ("ai", "reply"), ("tool", "found")]
    assert shown([ASKED, AIMessage(""), ASKED]) == [("human", "ask\n\nask")]
    assert in_order([ASKED, SAID, calls("a"), found("a")])[1].tool_calls == calls("a").tool_calls
    with_picture = in_order([ASKED, HumanMessage(["look", PICTURE])])[0]
    assert with_picture.content == [
        {"type": "text", "text": "ask"},
        {"type": "text", "text": "look"},
        PICTURE,
    ]


def test_what_the_model_said_first_is_data_of_the_user():
    said = [SAID, calls("a"), found("a"), ASKED, SAID, ASKED]
    first, *others = in_order([TOLD, *said])[1:]
    assert first.text == (
        "<conversation>\nassistant: reply\nassistant: [calls search: {}]\ntool: found\n"
        "</conversation>\n\nask"
    )
    assert others == said[4:]


def test_a_call_without_all_its_answers_is_data_of_the_user():
    half = [ASKED, calls("a", "b"), found("a"), ASKED]
    (message,) = in_order(half)
    assert message.text.startswith("ask\n\n<conversation>\nassistant: [calls search")
    (message,) = in_order([ASKED, found("a"), ASKED])
    assert message.text == "ask\n\n<conversation>\ntool: found\n</conversation>\n\nask"


def test_the_last_message_is_the_users_or_a_tools():
    assert shown([TOLD]) == [("system", "told"), ("human", TASK)]
    assert shown([]) == [("human", TASK)]
    assert shown([ASKED, SAID])[-1] == ("human", TASK)
    assert shown([TOLD, SAID])[1:] == [
        ("human", "<conversation>\nassistant: reply\n</conversation>")
    ]


KINDS = {
    "s": TOLD,
    "h": ASKED,
    "p": HumanMessage([PICTURE]),
    "a": SAID,
    "c": calls("a"),
    "d": calls("a", "b"),
    "t": found("a"),
    "u": found("b"),
}


@given(st.lists(st.sampled_from(list(KINDS)), max_size=30))
def test_every_prompt_keeps_strict_roles_and_nothing_is_lost(kinds):
    messages = [
        each.model_copy(update={"content": f"<<{at}>>"} if kind in "sha" else {})
        for at, (kind, each) in enumerate((kind, KINDS[kind]) for kind in kinds)
    ]
    ordered = in_order(messages)
    roles = {"human": "user", "ai": "assistant"}
    sent = [{"role": roles.get(each.type, each.type)} for each in ordered]
    Capabilities(strict_roles=True).check({"messages": sent})
    assert in_order(ordered) == ordered
    text = "\n".join(each.text for each in ordered)
    assert all(f"<<{at}>>" in text for at, kind in enumerate(kinds) if kind in "sha")
    open_calls = set()
    for message in ordered:
        if message.type != "tool":
            assert not open_calls
            open_calls = {call["id"] for call in getattr(message, "tool_calls", [])}
        else:
            open_calls.discard(message.tool_call_id)
    assert not open_calls
