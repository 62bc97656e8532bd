"""Over random conversations, each model call has every message once: summarised, or as it is."""

import asyncio
import re

from hypothesis import given, settings, strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from replan import MemoryOptions, Specialist, Team, build_graph, run, stream
from replan.errors import ReplanError
from replan.memory import summarise
from replan.testing import HttpFault, ScriptedModel, always
from scripts import SIMPLE, THREAD
from states import read_until_the_answer

PLAN = "---\ncomplexity: complex\n---\n# Look\n\n- [ ] 1. Look it up @clerk\n"
DONE = "---\nverdict: complete\n---\n"
MARK = re.compile(r"<<\d+>>")
TURNS = ["asked", "planned", "tools", "told", "long", "overtaken", "between", "by hand"]


class Talk:
    """A conversation in which each message has a mark, and summaries are the marks they cover."""

    def __init__(self, fails):
        self.number = 0
        self.fails = iter(fails)
        self.script = {
            "think": always(self.thought),
            "specialist": always("Found."),
            "feedback": always(lambda messages: DONE + self.marked("It is done.")),
            "memory_summary": always(self.summarised),
        }

    def marked(self, text):
        self.number += 1
        return f"<<{self.number}>> {text}"

    def thought(self, messages):
        if "look it up" in messages[-1].text:
            return PLAN
        return SIMPLE + self.marked("Paris.")

    def summarised(self, messages):
        failure = {"down": HttpFault(400), "empty": "", "refuses": REFUSAL}.get(
            next(self.fails, "")
        )
        return "".join(MARK.findall(messages[-1].text)) if failure is None else failure

    def said(self, kind):
        asked = HumanMessage(self.marked("look it up" if kind == "planned" else "and now?"))
        call = {"name": "search", "args": {"text": "x" * 40_000}, "id": "c"}
        calling = AIMessage(self.marked(""), tool_calls=[call, {**call, "id": "d"}])
        found = [ToolMessage(self.marked("y" * 9_000), tool_call_id=each) for each in "cd"]
        return {
            "tools": [HumanMessage(self.marked("find")), calling, *found, asked],
            "told": [SystemMessage(self.marked("Be brief.")), asked],
            "long": [HumanMessage(self.marked("z" * 50_000)), AIMessage(self.marked("")), asked],
        }.get(kind, [asked])


REFUSAL = AIMessage("", additional_kwargs={"refusal": "I will not."})


@settings(max_examples=10)
@given(
    st.lists(st.sampled_from(TURNS), min_size=6, max_size=14),
    st.lists(st.sampled_from(["", "", "down", "empty", "refuses"]), max_size=14),
    st.integers(1, 4),
    st.integers(1, 9),
)
def test_each_message_is_in_the_summary_or_in_the_window_exactly_once(turns, fails, limit, trigger):
    memory = MemoryOptions(mode="summary", history_limit=limit, summary_trigger_messages=trigger)
    asyncio.run(_talked(turns, Talk(fails), memory))


async def _talked(turns, talk, memory):
    with ScriptedModel(talk.script) as model:
        clerk = Specialist("clerk", "Looks up.", chat_model=model)
        graph = build_graph(Team(model, [clerk], memory=memory), checkpointer=InMemorySaver())
        for turn in turns:
            before = await _marks_of(graph)
            if turn == "between":
                await _summarised(graph, before)
                continue
            said, made = talk.said(turn), len(model.calls)
            if turn == "overtaken":
                await _left(graph, said)
            else:
                await run(graph, {"messages": said}, config=THREAD)
            asked = [*before, *(mark for each in said for mark in MARK.findall(each.text))]
            seen = [call for call in model.calls[made:] if call.node in ("think", "specialist")]
            assert seen
            for call in seen:
                text = "\n".join(message.text for message in call.messages)
                assert sorted(MARK.findall(text)) == sorted(asked), (turn, call.node)
                assert len(text) < 400_000


async def _marks_of(graph):
    values = (await graph.aget_state(THREAD)).values
    return [m for each in values.get("messages", []) for m in MARK.findall(each.text)]


async def _left(graph, said):
    """Somebody who leaves with the answer, so that no summary is written."""
    await read_until_the_answer(stream(graph, {"messages": said}, config=THREAD))


async def _summarised(graph, before):
    if before:
        try:
            await summarise(graph, THREAD)
        except ReplanError:
            assert await _marks_of(graph) == before
