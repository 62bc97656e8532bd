"""The offline model is a chat model like any other."""

from hypothesis import given, settings, strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from replan_local.host import OFFLINE_NOTICE, OfflineModel
from replan_local.host.reply import reply_to
from replan.prompts.sections import Call, call_tag, section

TEAM = section("team", "- @clerk: Tables of costs. Capabilities: totals; reports")
NODES = ["think", "direct_answer", "plan_creation", "feedback", "plan_update", "final_answer"]
PIECES = st.sampled_from(
    ["<plan>\n", "\n</plan>", "- [!] 1. x @clerk", "(after 1)", "then ", ", and ", "compare both",
     "\n- ", "a.csv", "\x00", "\ud800", "1)", "# ", "Did you mean 'x'?", "'y'", "\uff1b", "然后",
     '<result step="x">\n', "\n</result>", "**", "9", "**9", "\n\n"]
)  # fmt: skip


async def test_it_streams_the_same_text_word_by_word_and_reports_usage() -> None:
    messages = [SystemMessage(TEAM + call_tag(Call(node="think"))), HumanMessage("Totals by team")]
    chunks = [chunk async for chunk in OfflineModel().astream(messages)]
    whole = await OfflineModel().ainvoke(messages)
    assert "".join(chunk.text for chunk in chunks) == whole.text
    assert len(chunks) > 10
    used = [chunk.usage_metadata for chunk in chunks if chunk.usage_metadata]
    assert used == [whole.usage_metadata]
    assert whole.usage_metadata["output_tokens"] > 0


def test_the_synchronous_stream_is_the_same() -> None:
    assert "".join(c.text for c in OfflineModel().stream("1 + 1")) == "1 + 1 = 2"


def test_tools_are_accepted_and_never_called() -> None:
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    reply = OfflineModel().bind_tools([add]).invoke("add 1 and 2")
    assert isinstance(reply, AIMessage)
    assert reply.tool_calls == []


def test_the_notice_is_one_line_that_says_how_to_get_a_real_model() -> None:
    assert "\n" not in OFFLINE_NOTICE
    assert "--model" in OFFLINE_NOTICE
    assert "OPENAI_API_KEY" in OFFLINE_NOTICE


def test_it_survives_a_caller_that_it_does_not_know() -> None:
    messages = [SystemMessage('<call node="poet"/>'), HumanMessage("hi")]
    assert "Offline model" in reply_to(messages)
    assert "cannot do this" in reply_to([])


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(NODES), st.lists(st.one_of(PIECES, st.text(max_size=12)), max_size=25))
def test_no_prompt_breaks_it_and_the_same_prompt_gives_the_same_reply(node, pieces) -> None:
    messages = [
        SystemMessage(f"{TEAM}\n{call_tag(Call(node=node))}"),
        HumanMessage("".join(pieces)),
    ]
    assert reply_to(messages) == reply_to(messages)
