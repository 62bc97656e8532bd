"""Hard limits: no fan-out goes past one, a limited run answers, and a restart forgets none."""

import itertools
import re

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from replan import (
    Budget,
    ConfigurationError,
    Host,
    LimitReachedError,
    Limits,
    Price,
    RunSettings,
    Specialist,
    Team,
    ask_user,
    build_graph,
    open_runtime,
    open_storage,
    raise_limits,
    run,
    stream,
)
from replan.errors import UnpricedModelError
from replan.jobs import job_processor
from replan.jobs.spec.action_spec import ActionSpec
from replan.jobs.spec.job_spec import JobCommand, JobSpec
from replan.jobs.spec.slot import Slot
from replan.log.amounts import Bound, Reservation, Spending
from replan.prompts.host import HostPrompts, unread_warning
from replan.state.limits import rounded_up
from replan.state.rules import least_value
from replan.testing import Reply, ScriptedModel, always
from scripts import COMPLETE, THREAD, given

CLOSING = Reply(COMPLETE, usage=(200, 20))
WIDE = {"max_steps": 300, "max_parallel_steps": 200, "max_model_calls": 1_000}
PRICES = {"ScriptedModel": Price(input=2, output=10)}


def plan_of(steps, specialist="a"):
    return "".join(f"- [ ] {n}. Part {n} @{specialist}\n" for n in range(1, steps + 1))


def team(model, *specialists, **options):
    given = specialists or (Specialist(name="a", intended_use="Works.", chat_model=model),)
    storage = options.pop("storage", None)
    checkpointer = options.pop("checkpointer", None)
    config = Team(host=Host(model=model), specialists=list(given), **options)
    return build_graph(config, storage=storage, checkpointer=checkpointer)


def scripted(step, **replies):
    return ScriptedModel({"specialist": [always(step)], "feedback": [always(CLOSING)], **replies})


async def events_of(graph, plan, **options):
    return [event async for event in stream(graph, given(plan), **options)]


def ending(events):
    """The last event of the run, and the limits that were told."""
    told = [e for e in events if e.type == "limit_reached" and e.limit != "no_answer"]
    return events[-1], [(e.limit, e.value) for e in told]


async def test_a_server_that_counts_a_hundred_times_as_much_is_believed_when_it_has_answered():
    model = scripted(Reply("text", usage=(10, 100_000)))
    limits = Limits(**WIDE, max_tokens=50_000)
    result = await run(team(model, limits=limits), {"messages": ["Go."], "plan": plan_of(200)})
    # Only those that were in flight by then: each had reserved at least 1,024 tokens for its reply.
    assert len(model.calls) < 50_000 / 1_024
    assert (result.outcome, result.limit_reached) == ("partial", "max_tokens")
    passed = [each for each in result.warnings if "max_tokens=50000 was passed by" in each]
    assert "used more than was reserved for it" in passed[0]
    # Nothing is left for a model, so a rule answers with the results.
    assert result.text.startswith("## 1. Part 1\n\ntext")
    assert "The limit max_tokens=50000 is reached." in result.text


async def test_what_a_foreign_function_makes_of_a_limit_leaves_its_step_pending():
    async def work(context, config):
        try:
            await model.ainvoke("Hi", config)
        except LimitReachedError as error:
            raise ValueError("no model") from error

    model = scripted("-")
    graph = team(
        model,
        Specialist(name="a", intended_use="Works.", run=work),
        limits=Limits(max_model_calls=1),
    )
    state = (await run(graph, {"messages": [("user", "Go.")], "plan": plan_of(1)})).state
    assert state["current_plan"].step(1).status == "pending"
    assert state["limit_reached"] == "max_model_calls"


def nested(**options):
    """A team of one whose specialist is the graph of another team, of two steps."""
    plan = "---\ncomplexity: complex\n---\n- [ ] 1. Do it @a\n- [ ] 2. Do more @a (after 1)\n"
    step = Reply("Found.", usage=(1_000, 100))
    inner = team(scripted(step, think=always(plan), final_answer=always("So far.")))
    whole = Specialist(name="b", intended_use="Works.", invokable=inner, **options.pop("of", {}))
    return team(scripted("-"), whole, **options)


@pytest.mark.parametrize(
    ("limit", "text"),
    # The inner run has no room for its next step then, but for an answer.
    [({"max_model_calls": 3}, "Found."), ({"max_tokens": 3_450}, "So far.")],
    ids=["calls", "tokens"],
)
async def test_an_inner_run_that_met_a_limit_of_the_outer_run_leaves_its_step_pending(limit, text):
    graph, config = nested(checkpointer=InMemorySaver(), limits=Limits(**limit)), THREAD
    given = {"messages": [("user", "Go.")], "plan": plan_of(1, "b")}
    state = (await run(graph, given, config=config)).state
    (name,) = limit
    assert (state["outcome"], state["limit_reached"]) == ("partial", name)
    assert state["current_plan"].step(1).status == "pending"
    part = state["current_specialist_results"]["1/b"]
    assert (part.status, part.cut, text in part.text) == ("partial", name, True)
    assert "not run" in state["final_answer"].text
    more = RunSettings(limits=Limits(**{name: 100_000}))
    await raise_limits(graph, settings=more, config=config)
    state = (await run(graph, None, config=config)).state
    assert (state["outcome"], state["limit_reached"]) == ("completed", "")
    assert state["current_specialist_results"]["1/b"].text == "The answer."


async def test_an_inner_run_that_made_do_with_a_shorter_prompt_has_done_its_step():
    model = ScriptedModel(
        {
            "feedback": always("---\nverdict: complete\nfeedback: Done.\n---\n"),
            "final_answer": always(Reply("All of it.", usage=(100, 10))),
        }
    )

    async def work(context):
        return "A long text. " * 10_000

    inner = team(model, Specialist(name="a", intended_use="Works.", run=work))

    async def delegate(context, config):
        return (await inner.ainvoke({"plan": plan_of(1)}, config))["final_answer"]

    outer = team(
        scripted("-"),
        Specialist(name="b", intended_use="Works.", run=delegate),
        limits=Limits(max_tokens=20_000),
    )
    state = (await run(outer, {"plan": plan_of(1, "b")})).state
    assert (state["outcome"], state["limit_reached"]) == ("completed", "")
    assert state["current_specialist_results"]["1/b"].text == "All of it."
    (asked,) = [call for call in model.calls if call.node == "final_answer"]
    assert len(str(asked.messages)) < 20_000


async def test_an_inner_run_that_met_a_limit_of_its_specialist_gives_a_result_that_says_so():
    events = await events_of(nested(of={"limits": Budget(max_model_calls=2)}), plan_of(1, "b"))
    last, told = ending(events)
    assert (last.outcome, told) == ("partial", [("max_model_calls", 2)])
    (done,) = [event for event in events if event.type == "specialist_completed"]
    assert (done.result.status, "of specialist b is reached" in done.result.error) == (
        "partial",
        True,
    )
    assert done.result.marked_text.startswith(
        "[Incomplete: the limit max_model_calls was reached.]"
    )


@pytest.mark.parametrize("whose", ["the run", "a step", "a specialist"])
def test_money_is_only_bound_where_every_configured_model_has_a_price(whose):
    model, budget = ScriptedModel({}), Budget(max_cost=1)
    own = budget if whose == "a specialist" else Budget()
    worker = Specialist(name="a", intended_use="Works.", chat_model=model, limits=own)
    limits = {
        "the run": Limits(max_cost=1),
        "a step": Limits(per_step=budget),
        "a specialist": Limits(),
    }[whose]
    with pytest.raises(UnpricedModelError) as caught:
        team(model, worker, limits=limits)
    assert isinstance(caught.value, ConfigurationError)
    assert (caught.value.field, caught.value.value) == ("host.model", "'ScriptedModel'")
    assert "prices={'ScriptedModel': Price(input=..., output=...)}" in str(caught.value)
    team(model, worker, limits=limits, prices=PRICES)


async def test_a_run_that_binds_money_itself_is_refused_before_it_begins():
    model = ScriptedModel({})
    with pytest.raises(UnpricedModelError, match="model"):
        await run(team(model), "Go.", settings=RunSettings(limits=Limits(max_cost=1)))
    assert model.calls == []


async def test_the_built_in_model_costs_nothing():
    works = Specialist(name="a", intended_use="Works.", run=lambda context: "done")
    config = Team(host=Host(model="offline"), specialists=[works], limits=Limits(max_cost=1))
    state = (await run(build_graph(config), {"plan": plan_of(2)})).state
    assert (state["outcome"], state["usage"].cost) == ("completed", 0)


async def check_refused_without_a_price(work):
    config = Team(
        host=Host(model="offline"),
        specialists=[Specialist(name="a", intended_use="Works.", run=work)],
        limits=Limits(max_cost=1),
    )
    state = (await run(build_graph(config), {"plan": plan_of(1)})).state
    error = state["current_specialist_results"]["1/a"].error
    assert "this model has no price" in error
    assert "'ScriptedModel'" in error


async def test_a_model_inside_a_function_needs_a_price_too():
    async def work(context, config):
        return await ScriptedModel({}).ainvoke("Hi", config)

    await check_refused_without_a_price(work)


async def test_a_job_inside_a_function_does_not_go_on_without_a_model_that_has_no_price():
    model = ScriptedModel({})
    spec = JobSpec(
        "tea",
        slots=[Slot("kind", question="Which?")],
        commands=[JobCommand("make", needs=["kind"], action="do", words=["make"])],
        actions=[ActionSpec("do", run=print, effects="keyed")],
    )

    async def work(context, config):
        processor = job_processor(spec, model=model)
        job = processor.new_job()
        return (await processor.process(job, ["Make something nice."])).response_message

    await check_refused_without_a_price(work)
    assert model.calls == []


def asking(model, **options):
    def work(context):
        return ask_user("Which one?") if context.plan_step.id == 1 else "done"

    person = Specialist(name="p", intended_use="Asks.", run=work)
    worker = Specialist(name="a", intended_use="Works.", chat_model=model)
    return team(model, person, worker, **options)


PAUSED = "- [ ] 1. Ask @p\n" + "".join(f"- [ ] {n}. Part {n} @a (after 1)\n" for n in range(2, 8))


@pytest.mark.parametrize("more", [None, 12])
async def test_a_run_that_goes_on_may_get_higher_limits_and_keeps_them_else(more, tmp_path):
    model = scripted(Reply("text", usage=(10, 10)))
    async with open_storage(tmp_path / "runs.db") as storage:
        graph = asking(model, storage=storage, limits=Limits(max_model_calls=4))
        state = (await run(graph, given(PAUSED), config=THREAD)).state
        assert state["outcome"] == "waiting"
    async with open_storage(tmp_path / "runs.db") as storage:
        graph = asking(model, storage=storage, limits=Limits(max_model_calls=4))
        settings = more and RunSettings(limits=Limits(max_model_calls=more))
        state = (await run(graph, Command(resume="This."), config=THREAD, settings=settings)).state
    assert state["settings"].limits.max_model_calls == (more or 4)
    assert state["outcome"] == ("completed" if more else "partial")
    assert len(model.calls) == (7 if more else 4)


async def test_what_a_crash_left_unsettled_counts_in_the_next_process(tmp_path):
    model = scripted(Reply("text", usage=(10, 10)))
    limits = Limits(max_model_calls=5)
    async with open_storage(tmp_path / "runs.db") as storage:
        graph = asking(model, storage=storage, limits=limits)
        await run(graph, {"messages": [("user", "Go.")], "plan": PAUSED}, config=THREAD)
        run_id = (await graph.aget_state(THREAD)).values["run_id"]
        # What a process leaves behind that was killed in the middle of two calls.
        for name in ("one", "two"):
            lost = Reservation(id=name, run_id=run_id, amount=Spending(calls=1, tokens=9))
            await storage.log.reserve(lost, [Bound(scope="run", calls=5)])
    async with open_storage(tmp_path / "runs.db") as storage:
        graph = asking(model, storage=storage, limits=limits)
        state = (await run(graph, Command(resume="This."), config=THREAD)).state
        assert (await storage.log.spent(run_id)).get("run", Spending()).calls <= 5
    # Two steps and the answer: the other two calls are those of the crash.
    assert len(model.calls) == 3
    assert (state["outcome"], state["limit_reached"]) == ("partial", "max_model_calls")


async def test_the_time_of_a_run_goes_on_where_another_process_left_it(monkeypatch):
    now = itertools.count(0, 4)
    monkeypatch.setattr("replan.models.spending.deadline.time.monotonic", lambda: float(next(now)))
    model = scripted(Reply("text", usage=(10, 10)))
    saver, config = InMemorySaver(), {"configurable": {"thread_id": "t"}}
    graph = asking(model, checkpointer=saver, limits=Limits(max_seconds=10_000))
    await run(graph, {"messages": [("user", "Go.")], "plan": PAUSED}, config=config)
    settings = RunSettings(limits=Limits(max_seconds=1))
    state = (await run(graph, Command(resume="This."), config=config, settings=settings)).state
    assert (state["outcome"], state["limit_reached"]) == ("partial", "max_seconds")
    assert model.calls == []


async def test_a_limit_that_refuses_a_call_says_the_figures_and_the_least_that_helps():
    model = scripted(Reply("text", usage=(400, 100)))
    worker = Specialist(name="a", intended_use="Works.", chat_model=model)
    limits = Limits(**WIDE, max_cost=0.01)
    config = Team(host=Host(model=model), specialists=[worker], limits=limits, prices=PRICES)
    async with open_runtime(config, storage=":memory:") as runtime:
        first = await runtime.run({"messages": [("user", "Go.")], "plan": plan_of(20)})
        [hit] = [e async for e in runtime.events(first.run_id) if e.type == "limit_reached"]
        figures = (
            r"0\.00\d+ spent, 0\.00\d+ kept for the answer, and the next call may need 0\.0\d+"
        )
        assert re.fullmatch(figures, hit.reason)
        least = least_value(first.state, "max_cost")
        assert 0.01 < least < 0.02
        # With so much, one step more is done at least.
        raised = RunSettings(limits=Limits(max_cost=float(rounded_up(least))))
        again = await runtime.resume(first.run_id, settings=raised)
        assert len(again.plan.completed_steps) > len(first.plan.completed_steps)


@pytest.mark.parametrize(
    ("value", "told"), [(0.06312, "0.064"), (7, "7"), (8064 / 0.8, "11000"), (12, "12")]
)
def test_a_limit_is_proposed_with_two_digits_and_never_too_low(value, told):
    assert rounded_up(value) == told


@pytest.mark.parametrize("size", [100, 3_000])
async def test_an_answer_that_was_made_without_results_is_a_warning(size):
    model = ScriptedModel({"final_answer": [always("The answer.")]})
    judge = ScriptedModel({"feedback": [always(Reply(COMPLETE, usage=(6_000, 20)))]})
    worker = Specialist(name="a", intended_use="Works.", run=lambda context: "x" * size)
    host = Host(model=model, feedback_model=judge)
    limits = Limits(**WIDE, max_tokens=12_000)
    graph = build_graph(Team(host=host, specialists=[worker], limits=limits))
    end, _ = ending(await events_of(graph, plan_of(8)))
    assert end.answer.text == "The answer."
    asked = model.calls[-1].messages[-1].text
    if size == 100:
        assert (end.warnings, "characters cut" in asked) == ((), False)
    else:
        [told] = end.warnings
        assert re.fullmatch(
            r"The answer was made with \d+ characters of the result of steps 1, 2, 3, 4, 5, 6, 7, "
            r"8: there was no room for more\.",
            told,
        )
        assert "x" * size not in asked


async def test_results_that_a_prompt_has_no_room_for_are_named():
    worker = Specialist(name="a", intended_use="Works.", run=lambda context: "text " * 30)
    model = scripted("-")
    end = await run(team(model, worker), {"plan": plan_of(4)})
    host = HostPrompts(team=())
    assert unread_warning(end.state, host, 100_000) == ""
    assert unread_warning(end.state, host, 200) == (
        "The answer was made without the result of steps 3, 4, with 100 characters of the result "
        "of steps 1, 2: there was no room for more."
    )
