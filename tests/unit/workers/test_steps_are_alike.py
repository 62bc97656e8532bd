"""A step that a worker of a queue does comes to the same as one that the run does itself."""

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from replan import (
    Budget,
    InputError,
    Limits,
    Specialist,
    Team,
    ask_user,
    build_graph,
    open_runtime,
    open_storage,
    run,
)
from replan.ports.run_context import here
from replan.runs.calling.compiled import services_in
from replan.testing import ScriptedModel, always
from replan.workers.steps import run_queued_step

PLAN = "- [ ] 1. Ask @a (retries 1)\n"
END = "---\nverdict: complete\n---\nThat is all."


class Beside:
    """Another process, as far as a step can see: all goes to it and comes back as JSON."""

    services = None

    async def make_attempt(self, _, job, on_event, on_begin):
        on_begin()
        job = type(job).model_validate(job.model_dump(mode="json"))
        end = await run_queued_step(job, self.services, on_event)
        return type(end).model_validate(end.model_dump(mode="json"))


async def ended(work, *, queue, **limits):
    asked, judge = ScriptedModel({"*": always("text")}), ScriptedModel({"feedback": always(END)})

    async def ask(context):
        return await work(context, asked)

    worker = Specialist("a", "Asks.", run=ask, effects="pure", queue="gpu" if queue else "")
    team = Team(judge, [worker], limits=Limits(**limits))
    beside = Beside()
    graph = build_graph(team, elsewhere=beside if queue else None)
    beside.services = services_in(graph)
    result = await run(graph, {"messages": [("user", "Go.")], "plan": PLAN})
    step = result.state["current_specialist_results"]["1/a"]
    why = result.plan.step(1).feedback
    end = {name: getattr(result, name) for name in ("outcome", "limit_reached", "warnings")}
    return end | {"status": step.status, "cut": step.cut, "text": step.text, "why": why}


@pytest.mark.parametrize("queue", [True, False])
async def test_what_a_tool_did_is_not_done_again_unasked_wherever_the_step_was_done(queue):
    paid = []

    @tool
    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    pay.metadata = {"effects": "unsafe"}
    call = {"name": "pay", "args": {"amount": 5}, "id": "c1", "type": "tool_call"}
    model = ScriptedModel({"step 1": [AIMessage("", tool_calls=[call]), "It is paid."]})
    clerk = Specialist("a", "Pays.", chat_model=model, tools=[pay], queue="gpu" if queue else "")
    beside = Beside()
    async with open_storage(":memory:") as storage:
        team = Team(ScriptedModel({"feedback": always(END)}), [clerk])
        graph = build_graph(team, storage=storage, elsewhere=beside if queue else None)
        beside.services = services_in(graph)
        async with open_runtime(graph, storage=storage) as runtime:
            first = await runtime.run({"plan": PLAN})
            assert (first.outcome, paid) == ("completed", [5])
            with pytest.raises(InputError, match=r"step 1 at @a \(unsafe\) was done"):
                await runtime.retry(first.run_id, 1)


async def takes_what_it_gets(_, model):
    texts = []
    for _ in range(4):
        try:
            texts.append((await model.ainvoke("x")).text)
        except Exception:  # noqa: BLE001 - as careless code does
            break
    return f"{len(texts)} texts"


async def warns(*_):
    here().warn("The scale was not checked.")
    return "done"


@pytest.mark.parametrize(
    ("limits", "outcome"),
    [
        ({"max_model_calls": 3}, "partial"),
        ({"per_step": Budget(max_model_calls=2)}, "completed"),
    ],
)
async def test_what_came_before_a_limit_is_a_part_wherever_the_step_is_done(limits, outcome):
    there = await ended(takes_what_it_gets, queue=True, **limits)
    assert there == await ended(takes_what_it_gets, queue=False, **limits)
    assert (there["outcome"], there["cut"], there["text"]) == (
        outcome,
        "max_model_calls",
        "2 texts",
    )


async def test_a_graph_that_asks_at_a_worker_gives_no_result():
    asking = Specialist("b", "Asks.", run=lambda context: ask_user("Which?"), effects="pure")
    inner = build_graph(Team(ScriptedModel({}), [asking]))

    async def hands_on(*_):
        given = {"messages": [("user", "Go.")], "plan": "- [ ] 1. Ask @b\n"}
        return await inner.ainvoke(given)

    end = await ended(hands_on, queue=True)
    assert (end["outcome"], end["text"]) == ("failed", "")
    assert "a graph that waits for a person" in end["why"]


async def test_a_warning_of_a_step_is_in_the_result_wherever_the_step_is_done():
    there = await ended(warns, queue=True)
    assert there == await ended(warns, queue=False)
    assert "The scale was not checked." in there["warnings"]


async def test_a_server_that_is_away_is_no_error_of_the_step_wherever_it_is_done():
    async def is_away(*_):
        raise ConnectionError("reset")

    for queue in (True, False):
        end = await ended(is_away, queue=queue)
        assert "ConnectionError: reset" in end["why"]
        # Advice for what fails in the same way for a reason of its own.
        assert "does not help" not in end["why"]
