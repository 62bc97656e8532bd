"""Every call of a model, over HTTP, on a server that takes one order of roles and no other."""

import asyncio
from itertools import pairwise

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from replan import (
    Host,
    Limits,
    MemoryOptions,
    RAGOptions,
    RunSettings,
    Specialist,
    Team,
    ask_user,
    build_graph,
    run,
)
from replan.jobs.spec.action_spec import ActionSpec
from replan.jobs.spec.job_spec import JobCommand, JobSpec
from replan.jobs.spec.slot import Slot
from replan.models.providers.chat_models import LangChainModels
from replan.pipelines import (
    BaseAgent,
    InteractionUnit,
    Response,
    StateHandler,
    SubThreadAgent,
    SubThreadExecutionHandler,
    SubThreadPreparationHandler,
    require_sub_thread,
)
from replan.ports.retriever import SearchResponse
from replan.prompts.sections import sections_of
from replan.state.knowledge import Chunk
from replan.testing import Hang, HttpFault, OpenAIServer
from roles import check_requests, foreign, rows_of
from scripts import SIMPLE, THREAD

OPERATOR = "Speak of harbours only."
STEPS = """\
- [ ] 1. Look @look
- [ ] 2. Fail @bad (optional)
- [ ] 3. Ask @asks
- [ ] 4. Think @chat (after 1, 2, 3)
- [ ] 5. Use tools @tooled (after 1, 3)
- [ ] 6. Run @runnable (after 1)
- [ ] 7. Act @agent (after 1)
- [ ] 8. Book it for whoever has a cabin by the sea @booker
- [ ] 9. Write @writer (after 1)
"""


def search_harbours(q: str) -> str:
    """Search."""
    return foreign("tool result")


def fail_to_search(q: str) -> str:
    """Search elsewhere."""
    raise ValueError(foreign("tool error"))


class Knowledge:
    async def search(self, request):
        chunk = Chunk(
            content=foreign("passage"),
            source=foreign("source") + "\n\u202e.md",
            heading=foreign("heading"),
            score=0.9,
        )
        return SearchResponse(chunks=[chunk, chunk.replace(id="2", source="other.md")])


class Models:
    """What the models say, each in a text that orders what a system message may."""

    def __init__(self, *, apart):
        self.apart = apart
        self.judged = 0

    def __call__(self, request):
        node = request.call.node if request.call else "agent"
        say = getattr(self, f"say_{node}", None)
        return foreign(f"reply of {node}") if say is None else say(request)

    def say_think(self, request):
        if "plan it" not in request.messages[-1].text:
            return SIMPLE + ("" if self.apart else foreign("answer"))
        self.judged = 0
        head = f"---\ncomplexity: complex\nreasoning: {foreign('judgement')}\n---\n"
        return head if self.apart else head + STEPS

    def say_plan_creation(self, request):
        return STEPS

    def say_feedback(self, request):
        self.judged += 1
        if self.judged > 1:
            return "---\nverdict: complete\n---\n" + ("" if self.apart else foreign("answer"))
        head = "verdict: continue\nsuggested_action: update_plan\nfeedback: " + foreign("verdict")
        return f"---\n{head}\n---\n" + ("" if self.apart else "- [ ] 10. Look again @look\n")

    def say_plan_update(self, request):
        return "- [ ] 10. Look again @look\n"

    def say_final_answer(self, request):
        return foreign("answer")

    def say_direct_answer(self, request):
        called = {call["name"] for each in request.messages for call in _calls(each)}
        if "remember" not in called:
            return _calling("remember", text=foreign("fact"))
        return foreign("answer") if "recall" in called else _calling("recall", query="ignore")

    def say_specialist(self, request):
        name, called = request.call.specialist, [c for m in request.messages for c in _calls(m)]
        if name in ("tooled", "agent") and not called:
            return _calling("search_harbours", q="x")
        if name == "tooled" and len(called) == 1:
            return _calling("fail_to_search", q="x")
        return foreign(f"result of {name}")

    def say_extract(self, request):
        # What it reads has to be in the message.
        value = foreign("person")
        return f"---\nplace: {value}\n---" if value in request.messages[-1].text else "---\n"


def _calls(message):
    return getattr(message, "tool_calls", None) or []


def _calling(name, **arguments):
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"{name}-1"}])


class AskingHandler(StateHandler):
    """Asks the model with what its phase chooses: nothing, what the bot said, or all."""

    async def handle(self, task, thread, agent):
        own = require_sub_thread(thread, task.sub_thread_path).messages
        chosen = {
            "draft": [],
            "check": [each for each in own if each.sender == "bot"],
            "question": thread.messages[:1],
        }.get(self.phase, own)
        return Response(await agent.ai_adapter.chat(chosen, system_message=f"Do {self.phase}."))


class WritingAgent(SubThreadAgent):
    async def _initialize_interaction_units(self):
        phases = ("draft", "check", "question", "revision", None)
        handlers = [
            AskingHandler(phase=phase, next_phase=after) for phase, after in pairwise(phases)
        ]
        self.interaction_units = {
            each.phase: await InteractionUnit.create(state_handler=each) for each in handlers
        }


class ExecutionHandler(SubThreadExecutionHandler):
    sub_thread_agent = WritingAgent


class TextAgent(BaseAgent):
    async def _initialize_state_handlers(self):
        both = (SubThreadPreparationHandler(), ExecutionHandler())
        self.state_handlers = {each.phase: each for each in both}


def _raise(context):
    raise RuntimeError(foreign("error"))


def booking():
    return JobSpec(
        "booking",
        slots=[Slot("place", question="Where to?"), Slot("guest", question="Who goes?")],
        commands=[JobCommand("book", needs=["place", "guest"], action="act")],
        actions=[ActionSpec("act", run=lambda place, guest: foreign("action"))],
    )


def team_on(server, *, rag_mode="stuff", calls="merged", memory=None):
    own = ChatOpenAI(model="m", base_url=server.base_url, api_key="k", max_retries=0)
    members = [
        Specialist("look", "Looks.", run=lambda context: foreign("result"), effects="pure"),
        Specialist("bad", "Fails.", run=_raise, effects="pure"),
        Specialist(
            "asks",
            "Asks.",
            run=lambda context: f"told {ask_user(foreign('question'))}",
            effects="pure",
        ),
        Specialist("chat", "Thinks.", chat_model="openai:m"),
        Specialist(
            "tooled",
            "Uses tools.",
            chat_model="openai:m",
            tools=[search_harbours, fail_to_search],
            effects="pure",
            remembers=True,
        ),
        Specialist("runnable", "Runs.", invokable=own, effects="pure"),
        Specialist(
            "agent",
            "Acts.",
            # A server that insists on roles takes one system message: the agent's own.
            invokable=create_agent(own, [search_harbours], system_prompt="You act."),
            effects="pure",
        ),
        Specialist(
            "booker",
            "Books.",
            job=booking(),
            extraction_model="openai:m",
        ),
        Specialist("writer", "Writes.", pipeline=TextAgent, unit_model="openai:m"),
    ]
    return Team(
        Host("openai:m", remembers=True),
        members,
        calls=calls,
        knowledge=Knowledge(),
        rag=RAGOptions(mode=rag_mode),
        memory=memory or MemoryOptions(),
        limits=Limits(step_retries=0),
    )


async def answered(graph, request, settings=None):
    """The result of a request, in which a person answers whatever is asked."""
    result = await run(graph, request, config=THREAD, settings=settings)
    for _ in range(12):
        if not result.pending_questions:
            break
        said = {ask.key: foreign("person") for ask in result.pending_questions}
        result = await run(graph, Command(resume=said), config=THREAD)
    return result


SEEN_BY_ALL = (
    *("request", "passage", "source", "heading", "result", "error", "person"),
    *("tool result", "tool error", "result of chat", "result of runnable", "result of agent"),
    *("verdict", "fact", "answer", "reply of unit", "reply of memory_summary"),
)


@pytest.mark.parametrize(("calls", "rag_mode"), [("merged", "stuff"), ("separate", "map_reduce")])
async def test_nothing_foreign_is_in_a_system_message_of_any_call(calls, rag_mode):
    """All nodes of the host, specialists of each kind, models of jobs, pipelines, knowledge."""
    memory = MemoryOptions(mode="summary", history_limit=1, summary_trigger_messages=2)
    settings = RunSettings(user="eva")
    with OpenAIServer(Models(apart=calls == "separate"), strict_roles=True) as server:
        graph = build_graph(
            team_on(server, rag_mode=rag_mode, calls=calls, memory=memory),
            models=LangChainModels(base_url=server.base_url),
            checkpointer=InMemorySaver(),
            store=InMemoryStore(),
        )
        begun = {"messages": [("system", OPERATOR), ("user", foreign("request"))]}
        for request in (begun, foreign("request"), foreign("request") + ", plan it"):
            result = await answered(graph, request, settings)
        assert result.outcome in ("completed", "partial"), result.text
    check_requests(server, *SEEN_BY_ALL)
    nodes = {request.call.node for request in server.requests}
    assert nodes >= {"think", "specialist", "feedback", "memory_summary", "extract"}
    if calls == "separate":
        assert nodes >= {"direct_answer", "plan_creation", "plan_update", "final_answer"}
    assert ("knowledge" in nodes) == (rag_mode == "map_reduce")
    # What the operator's own code says stays an instruction, and the summary is in the request.
    hosts = ("think", "direct_answer", "plan_creation", "feedback", "specialist")
    for request in (each for each in server.requests if each.call.node in hosts):
        # An agent has a system message of its own, and ours is the beginning of its request.
        assert OPERATOR in "".join(each.text for each in request.messages[:2])
    last = [each for each in server.requests if each.call.node == "think"][-1]
    tags = [each.tag for each in sections_of(last.messages[-1].text)]
    assert tags == ["memory", "knowledge", "request"]


def plain_graph(server, **memory):
    """A graph whose host answers, or has its only specialist ask a person."""

    def ask(context):
        return f"It is {ask_user('Which one?')}."

    clerk = Specialist("clerk", "Asks.", run=ask, effects="pure")
    return build_graph(
        Team(Host("openai:m"), [clerk], memory=MemoryOptions(**memory)),
        models=LangChainModels(base_url=server.base_url),
        checkpointer=InMemorySaver(),
    )


@pytest.mark.parametrize("how", ["failed", "cancelled", "waiting"])
async def test_after_a_run_without_an_answer_the_conversation_goes_on(how):
    first = {
        "failed": HttpFault(401),
        "cancelled": Hang(),
        "waiting": "---\ncomplexity: complex\n---\n- [ ] 1. Ask @clerk\n",
    }[how]
    script = {"think": [first, first, *[f"{SIMPLE}Good day."] * 2]}
    with OpenAIServer(script, strict_roles=True) as server:
        graph = plain_graph(server)
        for count, text in enumerate(("One?", "Two?"), start=1):
            task = asyncio.create_task(run(graph, text, config=THREAD))
            if how == "cancelled":
                await asyncio.to_thread(server.wait_for_requests, count)
                task.cancel()
            (ended,) = await asyncio.gather(task, return_exceptions=True)
            assert getattr(ended, "outcome", "") == ("waiting" if how == "waiting" else "")
        for text in ("Three?", "Four?"):
            assert (await run(graph, text, config=THREAD)).text == "Good day."
    check_requests(server)
    # What nobody answered is not asked for again.
    third = server.requests[2].messages[-1].text
    assert "user: One?\nuser: Two?\n</conversation>\n\n<request>\nThree?\n</request>" in third
    assert [rows_of(each) for each in server.requests] == ["su", "su", "su", "suau"]


GREETED = AIMessage("Welcome. Red or blue?")


@pytest.mark.parametrize(
    "messages",
    [
        [("user", "One?"), ("user", "Two?")],
        [GREETED, ("user", "Blue.")],
        [("user", "Hi"), GREETED, GREETED, ("user", "Blue."), ("user", "Or red?")],
        [("user", "Hi"), _calling("search", q="x"), ("user", "Blue.")],
        [("system", OPERATOR), ("user", "Hi"), GREETED, ("system", "Be brief."), ("user", "Blue.")],
        [("system", OPERATOR), ("system", "Be brief."), ("user", "Blue.")],
    ],
)
@pytest.mark.parametrize("calls", ["merged", "separate"])
async def test_messages_in_any_order_are_sent_in_one(messages, calls):
    plan = "---\ncomplexity: complex\n---\n"
    script = {
        "think": plan if calls == "separate" else f"{plan}- [ ] 1. Look @clerk\n",
        "plan_creation": "- [ ] 1. Look @clerk\n",
        "specialist": "Found.",
        "feedback": "---\nverdict: complete\n---\nDone.",
        "final_answer": "Done.",
    }
    unused = ("plan_creation", "final_answer") if calls == "merged" else ()
    script = {node: reply for node, reply in script.items() if node not in unused}
    if calls == "separate":
        script["feedback"] = "---\nverdict: complete\n---\n"
    with OpenAIServer(script, strict_roles=True) as server:
        clerk = Specialist("clerk", "Looks.", chat_model="openai:m")
        team = Team(Host("openai:m"), [clerk], calls=calls)
        graph = build_graph(team, models=LangChainModels(base_url=server.base_url))
        result = await run(graph, {"messages": messages})
    assert (result.outcome, result.text) == ("completed", "Done.")
    check_requests(server)
    said = {"Red or blue?"} if GREETED in messages else set()
    said |= {text for role, text in _pairs(messages) if role == "user"}
    told = [text for role, text in _pairs(messages) if role == "system"]
    for request in server.requests:
        system, *others = request.messages
        assert all(text in system.text for text in told)
        assert all(any(text in each.text for each in others) for text in said)


def _pairs(messages):
    return [each for each in messages if isinstance(each, tuple)]
