"""A run that waits or was stopped goes on in another runtime, as the same run."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from replan import (
    ExecutionContext,
    Host,
    InputError,
    Limits,
    PortableRun,
    RunSettings,
    Specialist,
    Team,
    ask_user,
    open_runtime,
)
from replan.errors import ContextError
from replan.runs.reads import state_of
from replan.runs.reports import config_of
from replan.testing import ScriptedModel, always
from replan.views.run.history import history_lines
from replan.views.run.overview import used_text
from scripts import COMPLETE

PLAN = """\
- [ ] 1. Look around @worker
- [ ] 2. Paint the hall @painter (after 1)
- [ ] 3. Say so @worker (after 2)
"""


class World:
    """What steps do outside, with the keys by which a service would know them again."""

    def __init__(self) -> None:
        self.done: list[tuple[str, str]] = []
        self.prompts: list[str] = []
        self.pausing = asyncio.Event()
        self.paused = asyncio.Event()

    def work(self, context: ExecutionContext, idempotency_key: str) -> str:
        self.done.append((context.task_description, idempotency_key))
        return f"{context.task_description}: done"

    def paint(self, context: ExecutionContext) -> str:
        return f"{context.task_description}: {ask_user('Which colour?')}"

    def team(self, model: Any, *specialists: Specialist, **options: Any) -> Team:
        own = [
            Specialist(name="worker", intended_use="Works.", run=self.work),
            Specialist(name="painter", intended_use="Paints.", run=self.paint, effects="pure"),
        ]
        return Team(host=Host(model=model), specialists=[*own, *specialists], **options)


def sent(run: PortableRun) -> PortableRun:
    """The run as another process gets it; the order of keys in JSON says nothing."""
    return PortableRun.of_json(json.loads(json.dumps(run.to_json(), sort_keys=True)))


@pytest.fixture(params=["memory", "sqlite"])
def elsewhere(request, tmp_path: Path) -> Any:
    """Where the run goes on."""
    return ":memory:" if request.param == "memory" else tmp_path / "elsewhere.sqlite"


async def test_a_run_that_asks_goes_on_elsewhere_as_the_same_run(elsewhere, tmp_path):
    world = World()
    with ScriptedModel({"feedback": always(COMPLETE)}) as model:
        async with open_runtime(world.team(model), storage=tmp_path / "here.sqlite") as here:
            waits = await here.run({"plan": PLAN}, run_id="r")
            run = sent(await here.export("r"))
        first = list(world.done)
        async with open_runtime(world.team(model), storage=elsewhere) as there:
            await there.adopt(run)
            view = await there.get("r")
            plan = (await state_of("r", there.resources)).get("current_plan")
            assert (view.outcome, plan) == ("waiting", waits.plan)
            assert [ask.key for ask in view.pending_questions] == ["2/painter/1"]
            result = await (await there.answer("r", "blue"))
    assert waits.outcome == "waiting"
    assert (result.outcome, result.run_id) == ("completed", "r")
    assert result.results[2].text == "Paint the hall: blue"
    assert world.done == [*first, ("Say so", world.done[-1][1])]
    assert [each for each, _ in first] == ["Look around"]


async def test_a_run_that_was_exported_goes_on_here_only_once_it_is_taken_back(tmp_path):
    world = World()
    with ScriptedModel({"feedback": always(COMPLETE)}) as model:
        async with open_runtime(world.team(model), storage=tmp_path / "here.sqlite") as here:
            await here.run({"plan": PLAN}, run_id="r")
            sent(await here.export("r"))
            thread = config_of("r")
            recovery = await here.resume_interrupted()
            assert [(one.run_id, one.reason) for one in recovery.left_alone] == [("r", "exported")]
            for goes_on in (
                lambda: here.resume("r"),
                lambda: here.answer("r", "blue"),
                lambda: here.send_message("r", "Hurry."),
                lambda: here.skip("r", 2),
                lambda: here.graph.ainvoke(Command(resume="blue"), thread),
            ):
                with pytest.raises(InputError, match=r"was exported .*take_back"):
                    await goes_on()
            # It can be exported again: a file may be lost.
            again = sent(await here.export("r"))
            await here.take_back("r")
            result = await (await here.answer("r", "blue"))
        async with open_runtime(world.team(model), storage=":memory:") as there:
            await there.adopt(again)
            assert (await there.get("r")).outcome == "waiting"
            assert (await there.resume("r")).outcome == "waiting"
    assert (result.outcome, len(world.done)) == ("completed", 2)


async def test_the_attempts_before_are_told_in_the_order_of_their_times(elsewhere, tmp_path):
    two = {"plan": "- [ ] 1. Paint the hall @painter\n- [ ] 2. Paint the attic @painter\n"}
    with ScriptedModel({"feedback": always(COMPLETE)}) as model:
        team = World().team(model)
        async with open_runtime(team, storage=tmp_path / "here.sqlite") as here:
            await here.run(two, run_id="r")
            run = sent(await here.export("r"))
        async with open_runtime(team, storage=elsewhere) as there:
            await there.adopt(run)
            events = [(event.type, event.at) async for event in there.events("r")]
    times = [at for _, at in events]
    assert [kind for kind, _ in events] == [
        *["specialist_invoked"] * 2,
        *["attempt_ended"] * 2,
        "run_stopped",
    ]
    assert times == sorted(times)


@pytest.mark.parametrize("approval", ["never", "always"])
async def test_the_history_says_that_a_run_came_from_elsewhere(approval, elsewhere, tmp_path):
    asks = RunSettings(approval=approval)
    with ScriptedModel({"feedback": always(COMPLETE)}) as model:
        team = World().team(model)
        async with open_runtime(team, storage=tmp_path / "here.sqlite") as here:
            await here.run({"plan": PLAN}, run_id="r", settings=asks)
            assert not any("imported" in line for line in history_lines(await here.get("r")))
            run = sent(await here.export("r"))
        async with open_runtime(team, storage=elsewhere) as there:
            await there.adopt(run)
            *_, rests = history_lines(await there.get("r"))
            (ask,) = (await there.resume("r")).pending_questions
            answer = "approve" if ask.kind == "plan" else "blue"
            await (await there.answer("r", {ask.key: answer}))
            report = await there.get("r")
    came = "imported, and its beginning is told where it came from; now it waits for a person"
    assert rests.endswith(came)
    assert not any("killed" in line for line in history_lines(report))


async def test_a_run_keeps_its_title(elsewhere, tmp_path):
    world, given = World(), {"messages": [("user", "Hm.")], "plan": f"# The house\n\n{PLAN}"}
    with ScriptedModel({"feedback": always(COMPLETE)}) as model:
        async with open_runtime(world.team(model), storage=tmp_path / "here.sqlite") as here:
            await here.run(given, run_id="r")
            title, run = (await here.get("r")).title, sent(await here.export("r"))
        async with open_runtime(world.team(model), storage=elsewhere) as there:
            await there.adopt(run)
            assert (await there.get("r")).title == title == "The house"


async def test_a_run_is_adopted_again_that_was_not_entered_into_the_list(elsewhere, tmp_path):
    world = World()
    with ScriptedModel({"feedback": always(COMPLETE)}) as model:
        async with open_runtime(world.team(model), storage=tmp_path / "here.sqlite") as here:
            await here.run({"plan": PLAN}, run_id="r")
            run = sent(await here.export("r"))
        async with open_runtime(world.team(model), storage=elsewhere) as there:
            with pytest.MonkeyPatch.context() as patch:
                # As if its process were killed there.
                patch.setattr(there.storage.runs, "begin", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    await there.adopt(run)
            await there.adopt(run)
            with pytest.raises(InputError, match="is here already"):
                await there.adopt(run)
            result = await (await there.answer("r", "blue"))
    assert (result.outcome, len(world.done)) == ("completed", 2)


async def interrupted(_):
    raise KeyboardInterrupt


async def test_the_report_of_a_run_that_travelled_has_the_attempts_before(elsewhere, tmp_path):
    def attempts_of(report):
        own = [(e.entry.step_id, e.entry.number, e.entry.outcome) for e in report.attempts]
        return own, [each.entry.idempotency_key for each in report.attempts]

    world = World()
    with ScriptedModel({"feedback": always(COMPLETE)}) as model:
        async with open_runtime(world.team(model), storage=tmp_path / "here.sqlite") as here:
            await here.run({"plan": PLAN}, run_id="r")
            before = attempts_of(await here.get("r"))
            run = sent(await here.export("r"))
        async with open_runtime(world.team(model), storage=elsewhere) as there:
            await there.adopt(run)
            assert attempts_of(await there.get("r")) == before
            await (await there.answer("r", "blue"))
            report = await there.get("r")
    ends, keys = attempts_of(report)
    assert (ends[: len(before[0])], keys[: len(before[1])]) == before
    assert [outcome for *_, outcome in before[0]] == ["done", "waiting"]
    # Between the two it waited, and was not killed.
    assert [each.why for each in report.pauses] == ["waiting"]
    assert [each.seq for each in report.events] == [*range(1, len(report.events) + 1)]


async def test_the_keys_are_those_of_a_run_that_never_travelled(tmp_path):
    worlds = World(), World()
    with ScriptedModel({"feedback": always(COMPLETE)}) as model:
        async with open_runtime(worlds[0].team(model), storage=":memory:") as stays:
            await stays.run({"plan": PLAN}, run_id="r")
            await (await stays.answer("r", "blue"))
        async with open_runtime(worlds[1].team(model), storage=":memory:") as here:
            await here.run({"plan": PLAN}, run_id="r")
            run = sent(await here.export("r"))
        for _ in range(3):
            # Each of them only passes it on.
            async with open_runtime(worlds[1].team(model), storage=":memory:") as between:
                await between.adopt(run)
                assert (await between.resume("r")).outcome == "waiting"
                run = sent(await between.export("r"))
        async with open_runtime(worlds[1].team(model), storage=":memory:") as there:
            await there.adopt(run)
            await (await there.answer("r", {"2": "blue"}))
    assert worlds[0].done == worlds[1].done


async def test_an_edited_plan_goes_on_elsewhere_with_the_row_of_its_edit(elsewhere, tmp_path):
    world = World()
    with ScriptedModel({"feedback": always(COMPLETE)}) as model:
        async with open_runtime(world.team(model), storage=tmp_path / "here.sqlite") as here:
            waits = await here.run({"plan": PLAN}, run_id="r")
            assert waits.plan is not None
            edit = {"current_plan": {"content": waits.plan.content.replace("Say so", "Sing it")}}
            await here.graph.aupdate_state(config_of("r"), edit)
            run = sent(await here.export("r"))
            here_rows = [row for row in await here.storage.log.rows("r") if row.kind == "edit"]
        async with open_runtime(world.team(model), storage=elsewhere) as there:
            await there.adopt(run)
            assert (await there.get("r")).plan.step(3).description == "Sing it"
            there_rows = [row for row in await there.storage.log.rows("r") if row.kind == "edit"]
            result = await (await there.answer("r", "blue"))
    assert [row.value["by"] for row in here_rows] == ["a person"]
    assert [row.value for row in there_rows] == [row.value for row in here_rows]
    assert (result.outcome, result.results[3].text) == ("completed", "Sing it: done")


async def test_a_plan_is_approved_elsewhere_and_only_for_what_was_shown(elsewhere):
    world = World()
    with ScriptedModel({"feedback": always(COMPLETE)}) as model:
        team, always_ask = world.team(model), RunSettings(approval="always")
        plan = {"plan": "- [ ] 1. Look around @worker\n"}
        async with open_runtime(team, storage=":memory:") as here:
            waits = await here.run(plan, run_id="r", settings=always_ask)
            run = sent(await here.export("r"))
        (asked,) = waits.pending_questions
        async with open_runtime(team, storage=elsewhere) as there:
            await there.adopt(run)
            again = await there.resume("r")
            assert again.pending_questions[0].fingerprint == asked.fingerprint
            wrong = {"action": "approve", "fingerprint": "another"}
            with pytest.raises(InputError):
                await there.answer("r", {"plan": wrong})
            word = {"action": "approve", "fingerprint": asked.fingerprint}
            result = await (await there.answer("r", {"plan": word}))
    assert (result.outcome, len(world.done)) == ("completed", 1)


def paying(world: World) -> Any:
    def pay(amount: int, idempotency_key: str) -> str:
        """Pay an amount.

        Args:
            amount: How much.
        """
        world.done.append((f"pay {amount}", idempotency_key))
        return f"paid {amount}"

    return pay


def calling(amount: int) -> AIMessage:
    call = {"name": "pay", "args": {"amount": amount}, "id": f"c{amount}", "type": "tool_call"}
    return AIMessage("", tool_calls=[call])


async def test_a_tool_loop_goes_on_in_its_middle_and_no_reply_is_asked_for_again(elsewhere):
    world = World()

    def buyer(model: Any) -> Specialist:
        return Specialist(
            name="buyer",
            intended_use="Buys.",
            chat_model=model,
            tools=[paying(world), ship],
            approve=["ship"],
        )

    def ship(place: str) -> str:
        """Ship it.

        Args:
            place: Where to.
        """
        world.done.append((f"ship {place}", ""))
        return f"shipped to {place}"

    shipping = {"name": "ship", "args": {"place": "Rome"}, "id": "s", "type": "tool_call"}
    first = {"step 1": [calling(5), AIMessage("", tool_calls=[shipping])]}
    plan = {"plan": "- [ ] 1. Buy it @buyer\n"}
    with ScriptedModel(first) as model:
        team = world.team(model, buyer(model))
        async with open_runtime(team, storage=":memory:") as here:
            waits = await here.run(plan, run_id="r")
            run = sent(await here.export("r"))
    (ask,) = waits.pending_questions
    assert (ask.kind, ask.key) == ("approval", "1/buyer/1")
    assert [name for name, _ in world.done] == ["pay 5"]
    with ScriptedModel({"step 1": "Bought.", "feedback": COMPLETE}) as model:
        team = world.team(model, buyer(model))
        async with open_runtime(team, storage=elsewhere) as there:
            await there.adopt(run)
            word = {"action": "approve", "fingerprint": ask.fingerprint}
            result = await (await there.answer("r", {ask.key: word}))
        told = [each for call in model.calls for each in call.messages]
    assert result.results[1].text == "Bought."
    assert [name for name, _ in world.done] == ["pay 5", "ship Rome"]
    paid, shipped = [each for each in told if isinstance(each, ToolMessage)][:2]
    assert (paid.content, shipped.content) == ("paid 5", "shipped to Rome")


async def stopped(world: World, team: Team, plan: dict[str, str]) -> PortableRun:
    """Start a run here, stop it where it pauses, and send it."""
    stop = asyncio.Event()
    async with open_runtime(team, storage=":memory:", grace=0.01) as here:
        going = await here.start(plan, run_id="r", stop=stop)
        await world.paused.wait()
        stop.set()
        assert (await going).outcome == "interrupted"
        return sent(await here.export("r"))


async def test_a_stopped_round_goes_on_elsewhere_and_repeats_nothing(elsewhere):
    world = World()

    async def slow(context: ExecutionContext) -> str:
        world.prompts.append(context.task_description)
        if not world.pausing.is_set():
            world.paused.set()
            await asyncio.Event().wait()
        return "done at last"

    slowly = Specialist(name="slow", intended_use="Works slowly.", run=slow, effects="pure")
    plan = {"plan": "- [ ] 1. Look around @worker\n- [ ] 2. Wait @slow (after 1)\n"}
    with ScriptedModel({"feedback": COMPLETE}) as model:
        team = world.team(model, slowly)
        run = await stopped(world, team, plan)
        world.pausing.set()
        async with open_runtime(team, storage=elsewhere) as there:
            await there.adopt(run)
            assert (await there.get("r")).outcome == "interrupted"
            result = await there.resume("r")
    assert result.outcome == "completed"
    assert [name for name, _ in world.done] == ["Look around"]
    assert world.prompts == ["Wait", "Wait"]


async def test_what_was_spent_stays_spent(elsewhere):
    world = World()
    limited = Limits(max_model_calls=3)
    think = "---\ncomplexity: complex\n---\n" + PLAN
    with ScriptedModel({"think": think}) as model:
        team = world.team(model, limits=limited)
        async with open_runtime(team, storage=":memory:") as here:
            waits = await here.run("Paint the hall.", run_id="r")
            run = sent(await here.export("r"))
    assert waits.usage.calls == 1
    with ScriptedModel({"feedback": COMPLETE}) as model:
        async with open_runtime(world.team(model, limits=limited), storage=elsewhere) as there:
            await there.adopt(run)
            assert (await there.storage.log.spent("r"))["run"].calls == 1
            result = await (await there.answer("r", "blue"))
            assert (await there.storage.log.spent("r"))["run"].calls == 2
    assert (result.outcome, result.usage.calls) == ("completed", 2)


async def test_the_calls_before_are_not_said_to_have_never_ended(elsewhere):
    think = "---\ncomplexity: complex\n---\n" + PLAN
    with ScriptedModel({"think": think}) as model:
        async with open_runtime(World().team(model), storage=":memory:") as here:
            await here.run("Paint the hall.", run_id="r")
            run, before = sent(await here.export("r")), used_text(await here.get("r"))
    with ScriptedModel({"feedback": COMPLETE}) as model:
        async with open_runtime(World().team(model), storage=elsewhere) as there:
            await there.adopt(run)
            adopted = used_text(await there.get("r"))
            result = await (await there.answer("r", "blue"))
            after = await there.get("r")
    assert adopted == before
    assert used_text(after).startswith("2 model calls, ")
    assert after.calls.total_tokens == result.usage.total_tokens
    assert (after.calls.unfinished_calls, after.calls.uncounted_tokens) == (0, 0)


async def test_the_calls_of_a_graph_that_is_called_by_itself_have_ended(tmp_path):
    think = "---\ncomplexity: complex\n---\n" + PLAN
    with ScriptedModel({"think": think, "feedback": COMPLETE}) as model:
        async with open_runtime(World().team(model), storage=tmp_path / "runs.sqlite") as here:
            await here.run("Paint the hall.", run_id="r")
            record = await here.storage.runs.get("r")
            answers = {"2/painter/1": "blue"}
            await here.graph.ainvoke(Command(resume=answers), config_of(record.thread_id))
            used = used_text(await here.get("r"))
    assert used.startswith("2 model calls, ")


async def test_a_run_whose_graph_waits_stays_and_says_what_its_step_has_done(tmp_path):
    def look(_: Any) -> dict[str, Any]:
        return {"messages": [AIMessage("It is dark.")]}

    def ask(state: Any) -> dict[str, Any]:
        return {"messages": [AIMessage(f"{state['messages'][-1].text} {interrupt('Well?')}")]}

    graph = StateGraph(MessagesState).add_node("look", look).add_node("ask", ask)
    inner = graph.add_edge(START, "look").add_edge("look", "ask").compile()
    asks = Specialist(name="graph", intended_use="Asks.", invokable=inner, effects="pure")
    with ScriptedModel({"feedback": COMPLETE}) as model:
        team = World().team(model, asks)
        async with open_runtime(team, storage=tmp_path / "here.sqlite") as here:
            await here.run({"plan": "- [ ] 1. Ask @graph\n"}, run_id="r")
            with pytest.raises(InputError) as refused:
                await here.export("r")
            result = await (await here.answer("r", "Yes."))
    for part in ("@graph", "its step so far: look.", "its work: pure.", "ask_user", "storage"):
        assert part in str(refused.value)
    assert result.results[1].text == "It is dark. Yes."


async def test_a_run_that_is_over_has_nothing_to_go_on_with():
    with ScriptedModel({"feedback": COMPLETE}) as model:
        async with open_runtime(World().team(model), storage=":memory:") as here:
            await here.run({"plan": "- [ ] 1. Look around @worker\n"}, run_id="r")
            with pytest.raises(InputError, match="is over"):
                await here.export("r")
            with pytest.raises(InputError, match="no run 'other'"):
                await here.export("other")


async def test_a_run_is_adopted_once():
    with ScriptedModel({"feedback": COMPLETE}) as model:
        async with open_runtime(World().team(model), storage=":memory:") as here:
            await here.run({"plan": PLAN}, run_id="r")
            run = await here.export("r")
            with pytest.raises(InputError, match="here already"):
                await here.adopt(run)
            await here.take_back("r")
            result = await (await here.answer("r", "red"))
    assert result.outcome == "completed"


async def test_a_team_that_lost_the_specialist_of_a_step_refuses_the_run():
    world, stop = World(), asyncio.Event()

    async def slow(_: ExecutionContext) -> None:
        world.paused.set()
        await asyncio.Event().wait()

    slowly = Specialist(name="slow", intended_use="Waits.", run=slow, effects="pure")
    with ScriptedModel({}) as model:
        team = world.team(model, slowly)
        async with open_runtime(team, storage=":memory:", grace=0.01) as here:
            going = await here.start({"plan": "- [ ] 1. Wait @slow\n"}, run_id="r", stop=stop)
            await world.paused.wait()
            stop.set()
            await going
            run = await here.export("r")
        async with open_runtime(world.team(model), storage=":memory:") as there:
            await there.adopt(run)
            with pytest.raises(InputError, match="@slow"):
                await there.resume("r")


async def test_every_bad_field_of_a_run_is_named():
    with ScriptedModel({}) as model:
        async with open_runtime(World().team(model), storage=":memory:") as here:
            await here.run({"plan": PLAN}, run_id="r")
            data: Any = (await here.export("r")).to_json()
    data["state"]["current_specialist_results"]["1/worker"] = {"on_record": "nowhere"}
    data["state"]["settings"] = {"limits": {"max_rounds": "many"}}
    data["state"]["messages"] = [{"type": "robot"}]
    data["state"]["run_id"] = "other"
    data["rows"]["attempts"][0]["number"] = "one"
    with pytest.raises(ContextError) as refused:
        PortableRun.of_json(data, ("run",))
    assert {each.field for each in refused.value.mistakes} == {
        "run.state.current_specialist_results['1/worker']",
        "run.state.settings.limits.max_rounds",
        "run.state.messages[0]",
        "run.state.run_id",
        "run.rows.attempts[0].number",
    }
    data["state"]["messages"] = [[]]
    data["rows"] = {"notes": [["question/2/painter/1", 3]]}
    with pytest.raises(ContextError) as refused:
        PortableRun.of_json(data, ("run",))
    found = {each.field for each in refused.value.mistakes}
    assert {"run.state.messages", "run.rows.notes[0][1]"} <= found
    with pytest.raises(ContextError, match=r"run\.format"):
        PortableRun.of_json({**data, "format": 2}, ("run",))
