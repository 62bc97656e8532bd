"""Runs as traces: which span stands below which, what it says, and how it ends."""

import asyncio

import pytest
from langchain_core.messages import AIMessage

from replan import (
    Host,
    InputError,
    ModelCallError,
    Price,
    Specialist,
    Team,
    ask_user,
    build_graph,
    open_runtime,
    open_storage,
    run,
)
from replan.base.secrets.sources import learn_values
from replan.models.providers.chat_models import LangChainModels
from replan.testing import HttpFault, OpenAIServer, Reply, always
from seen_spans import Seen

PLAN = "---\ncomplexity: complex\n---\n- [ ] 1. Price of gold @buyer (retries 2)\n"
MORE = """\
---
verdict: continue
suggested_action: update_plan
update: Say it.
feedback: It has to be said.
---
- [x] 1. Price of gold @buyer
- [ ] 2. Say it @teller (after 1)
"""
END = "---\nverdict: complete\n---\nGold is dear."
FAILED = "---\nstatus: failed\nretry: true\n---\n"
SECRET = "hunter2-hunter2"  # noqa: S105 - nobody's


def calling(name, **arguments):
    called = {"name": name, "args": arguments, "id": "c", "type": "tool_call"}
    return AIMessage("", tool_calls=[called])


class Market:
    """A tool that fails the first time, and traces what it does itself."""

    def __init__(self, seen):
        self.tracer, self.calls = seen.provider.get_tracer("of the tool"), 0

    def price(self, of: str) -> str:
        """Give the price of a thing.

        Args:
            of: The thing.
        """
        self.calls += 1
        with self.tracer.start_as_current_span("SELECT"):
            if self.calls == 1:
                raise ValueError(f"no quote for {of}")
        return "42 as the tool says"


def team_on(server, seen, *others, storage=None, **options):
    market = Market(seen)
    buyer = Specialist(
        "buyer", "Buys.", chat_model="openai:m", tools=[market.price], effects="pure"
    )
    team = Team(Host(model="openai:m"), [buyer, *others], traces=seen.traces, **options)
    return build_graph(team, storage=storage, models=LangChainModels(base_url=server.base_url))


def telling(seen):
    tracer = seen.provider.get_tracer("of the function")

    def tell(context):
        with tracer.start_as_current_span("GET"):
            return "told"

    return Specialist("teller", "Tells.", run=tell)


SCRIPT = {
    "think": PLAN,
    "step 1": [
        calling("price", of="gold"),
        f"{FAILED}No price.",
        calling("price", of="gold"),
        "42",
    ],
    "feedback": [MORE, END],
}

TREE = """\
invoke_workflow replan completed
  chat m
  round 1
    step 1 completed
      invoke_agent buyer failed _OTHER!
        chat m
        execute_tool price failed ValueError!
          SELECT!
        chat m
      invoke_agent buyer done
        chat m
        execute_tool price success
          SELECT
        chat m
    chat m
  round 2
    step 2 completed
      invoke_agent teller done
        GET
    chat m"""


async def test_a_run_with_a_retry_a_failed_tool_and_a_revision_is_one_tree():
    seen = Seen()
    with OpenAIServer(SCRIPT) as server:
        result = await run(team_on(server, seen, telling(seen)), "Gold?", run_id="r")
    assert result.outcome == "completed"
    assert "\n".join(seen.lines) == TREE
    assert len({span.context.trace_id for span in seen.spans}) == 1
    whole, attempt, tool = (seen.named(each)[0] for each in ("invoke_w", "invoke_a", "execute"))
    assert whole.attributes["replan.run.id"] == "r"
    assert [event.name for event in whole.events] == ["replan.plan_created"]
    revised = [event for event in seen.named("round 1")[0].events if "updated" in event.name]
    assert revised[-1].attributes["replan.plan.version"] == 2
    assert dict(attempt.attributes) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "buyer",
        "replan.step.id": 1,
        "replan.attempt": 1,
        "replan.outcome": "failed",
        "error.type": "_OTHER",
    }
    assert tool.attributes["gen_ai.operation.name"] == "execute_tool"
    assert tool.attributes["gen_ai.tool.name"] == "price"
    asked = seen.named("chat")[0]
    assert asked.kind.name == "CLIENT"
    told = dict(asked.attributes)
    assert told.pop("gen_ai.usage.input_tokens") > 0
    assert told.pop("gen_ai.usage.output_tokens") > 0
    assert told == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m",
        "replan.node": "think",
    }


async def test_metrics_count_calls_tokens_cost_tools_and_steps():
    seen = Seen()
    with OpenAIServer(SCRIPT) as server:
        graph = team_on(server, seen, telling(seen), prices={"m": Price(input=3, output=5)})
        result = await run(graph, "Gold?")
    sums: dict[str, float] = {}
    for name, _, value in seen.points:
        sums[name] = sums.get(name, 0) + value
    assert sums["gen_ai.client.token.usage"] == result.usage.total_tokens
    assert sums["replan.cost"] == pytest.approx(result.usage.cost)
    assert sums["gen_ai.client.operation.duration"] > 0
    tools = [about for name, about, _ in seen.points if name == "gen_ai.execute_tool.duration"]
    assert {each.get("error.type") for each in tools} == {None, "ValueError"}
    steps = {about["gen_ai.agent.name"] for name, about, _ in seen.points if "step" in name}
    assert steps == {"buyer", "teller"}
    assert not any(value == "r" for _, about, _ in seen.points for value in about.values())


async def test_a_cost_that_nobody_knows_is_absent():
    seen = Seen()
    with OpenAIServer(SCRIPT) as server:
        await run(team_on(server, seen, telling(seen)), "Gold?")
    assert not any("replan.cost" in span.attributes for span in seen.spans)
    assert "replan.cost" not in {name for name, _, _ in seen.points}


async def test_no_text_is_in_a_trace_unless_it_is_asked_for():
    plain, full = Seen(), Seen(content=True)
    for seen in (plain, full):
        with OpenAIServer(SCRIPT) as server:
            await run(team_on(server, seen, telling(seen)), "Is gold dear today?")
    texts = {
        "Is gold dear today?": "a request",
        "No price.": "a reply",
        "42 as the tool says": "a result",
        "no quote for gold": "an error",
        '"of": "gold"': "arguments",
        "Gold is dear.": "the answer",
    }
    own = ("SELECT", "GET")
    without, within = (
        "".join(span.to_json() for span in seen.spans if span.name not in own).replace('\\"', '"')
        for seen in (plain, full)
    )
    assert [what for text, what in texts.items() if text in without] == []
    assert [what for text, what in texts.items() if text not in within] == []


async def test_content_has_no_known_secret():
    learn_values([SECRET])
    seen = Seen(content=True)
    script = {"think": "---\ncomplexity: simple\n---\nYes."}
    with OpenAIServer(script) as server:
        await run(team_on(server, seen), f"Is {SECRET} good?")
    asked = seen.named("chat")[0].attributes
    assert "good?" in asked["gen_ai.input.messages"]
    assert SECRET not in "".join(span.to_json() for span in seen.spans)


def asking(context):
    return f"bought for {ask_user('How much?')}"


async def test_a_run_that_goes_on_elsewhere_links_to_where_it_waited(tmp_path):
    where, first, second = tmp_path / "runs.db", Seen(), Seen()
    scripts = {"think": PLAN.replace("buyer", "asker")}, {"feedback": END}
    for seen, script in zip((first, second), scripts, strict=True):
        with OpenAIServer(script) as server:
            async with open_storage(where) as storage:
                asker = Specialist("asker", "Asks.", run=asking, effects="pure")
                graph = team_on(server, seen, asker, storage=storage)
                async with open_runtime(graph, storage=storage) as runtime:
                    if seen is first:
                        result = await runtime.run("Gold?", run_id="r", thread_id="t")
                    else:
                        result = await (await runtime.answer("r", "10"))
                    events = [each async for each in runtime.events("r")]
    assert result.outcome == "completed"
    assert first.lines == [
        "invoke_workflow replan waiting",
        "  chat m",
        "  round 1 waiting",
        "    step 1 waiting",
        "      invoke_agent asker waiting",
    ]
    assert second.lines == [
        "invoke_workflow replan completed",
        "  round 2",
        "    step 1 completed",
        "      invoke_agent asker done",
        "    chat m",
    ]
    before, after = first.named("invoke_w")[0], second.named("invoke_w")[0]
    (link,) = after.links
    assert link.context.span_id == before.context.span_id
    assert link.context.trace_id == before.context.trace_id != after.context.trace_id
    for span in (before, after):
        assert span.attributes["gen_ai.conversation.id"] == "t"
        assert span.attributes["replan.run.id"] == "r"
    assert before.links == ()
    # The metrics count the work before the question, as the events do.
    took = {name: value for name, about, value in second.points if about.get("replan.outcome")}
    (run_seconds,) = (e.run_seconds for e in events if e.type == "task_completed")
    began, rested = (
        next(e.at for e in events if e.type == each) for each in ("run_started", "run_stopped")
    )
    first_part = (rested - began).total_seconds()
    assert took["replan.run.duration"] >= run_seconds - 0.002 > first_part > 0


async def test_a_stopped_run_and_a_failed_one_end_with_what_became_of_them():
    seen, stop, begun = Seen(), asyncio.Event(), asyncio.Event()

    async def never(context):
        begun.set()
        await asyncio.Event().wait()

    slow = Specialist("buyer", "Buys.", run=never)
    graph = build_graph(Team(Host(model="offline"), [slow], traces=seen.traces))
    running = asyncio.ensure_future(
        run(graph, {"plan": "# Buy\n\n- [ ] 1. Buy @buyer\n"}, stop=stop, grace=0)
    )
    await begun.wait()
    stop.set()
    assert (await running).outcome == "interrupted"
    assert seen.lines == [
        "invoke_workflow replan interrupted",
        "  round 1 interrupted",
        "    step 1 cancelled",
        "      invoke_agent buyer cancelled",
    ]
    broken = Seen()
    with (
        OpenAIServer({"think": always(Reply(fault=HttpFault(400)))}) as server,
        pytest.raises(ModelCallError),
    ):
        await run(team_on(server, broken), "Gold?")
    lines = broken.lines
    assert lines[0].startswith("invoke_workflow replan interrupted ")
    assert lines[0].endswith("Error!")
    assert lines[1].startswith("  chat m ")


async def test_the_span_of_the_caller_is_the_parent_and_runs_at_once_do_not_mix():
    seen = Seen()
    tracer = seen.provider.get_tracer("of the caller")
    plan = {"plan": "# Tell\n\n- [ ] 1. Tell @teller\n- [ ] 2. Tell @teller\n"}
    graph = build_graph(Team(Host(model="offline"), [telling(seen)], traces=seen.traces))

    async def called(number):
        with tracer.start_as_current_span(f"POST {number}"):
            await run(graph, plan, run_id=f"r{number}")

    await asyncio.gather(*map(called, range(5)))
    for number in range(5):
        (root,) = seen.named(f"POST {number}")
        same = [each for each in seen.spans if each.context.trace_id == root.context.trace_id]
        ids = {each.attributes["replan.run.id"] for each in same if "invoke_w" in each.name}
        assert ids == {f"r{number}"}
        names = sorted(each.name for each in same if not each.name.startswith("chat"))
        assert names == sorted(
            [f"POST {number}", "invoke_workflow replan", "round 1", "step 1", "step 2"]
            + ["invoke_agent teller", "GET"] * 2
        )


async def test_a_team_in_a_traced_team_stands_below_the_attempt_that_calls_it():
    seen = Seen()
    inner = build_graph(Team(Host(model="offline"), [telling(seen)], name="inner"))

    async def delegate(context):
        await run(inner, {"plan": "# Tell\n\n- [ ] 1. Tell @teller\n"})
        return "done"

    outer = Specialist("boss", "Delegates.", run=delegate)
    graph = build_graph(Team(Host(model="offline"), [outer], traces=seen.traces))
    await run(graph, {"plan": "# Do\n\n- [ ] 1. Do it @boss\n"})
    lines = [line for line in seen.lines if "chat" not in line]
    assert lines == [
        "invoke_workflow replan completed",
        "  round 1",
        "    step 1 completed",
        "      invoke_agent boss done",
        "        invoke_workflow inner completed",
        "          round 1",
        "            step 1 completed",
        "              invoke_agent teller done",
        "                GET",
    ]


async def test_a_call_that_does_nothing_leaves_no_span():
    seen = Seen()
    graph = build_graph(Team(Host(model="offline"), [telling(seen)], traces=seen.traces))
    with pytest.raises(InputError):
        await graph.ainvoke({})
    assert seen.spans == []
