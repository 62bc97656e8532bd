"""What makes a step the same step: what changed is done, what was done is never done twice."""

import asyncio

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import interrupt

from replan import (
    ExecutionStatus,
    Host,
    Limits,
    Specialist,
    SpecialistResult,
    StepStatus,
    Team,
    build_graph,
    open_storage,
    run,
    waiting_for,
)
from replan.plan import parse_plan_from_markdown
from replan.testing import ScriptedModel, always
from scripts import COMPLETE, THREAD
from states import said

pytestmark = pytest.mark.one_store

CONTINUE = "---\nverdict: continue\nupdate: Again.\n---\n"
CHAIN = "- [ ] 1. One @a\n- [ ] 2. Two @a (after 1)\n"


class World:
    """Specialists that fail as often as they are told to, and count what they do."""

    def __init__(self, **fails):
        self.fails = fails
        self.done, self.keys = [], []

    def member(self, name, **options):
        def work(context):
            step = context.plan_step
            self.done.append((step.id, step.description, name))
            self.keys.append(context.idempotency_key)
            if self.fails.get(name, 0):
                self.fails[name] -= 1
                raise ConnectionError(f"{name} is down")
            return f"{step.description} by {name} from {list(context.inputs.values())}"

        return Specialist(
            name=name, intended_use="Works.", run=work, **{"effects": "keyed", **options}
        )

    def config(self, *feedback, names="ab", member=None, **options):
        replies = {"feedback": [*feedback, always(COMPLETE)], "final_answer": always("Cut.")}
        options.setdefault("limits", Limits(step_retries=0, max_stalls=6))
        return Team(
            host=Host(model=ScriptedModel(replies)),
            specialists=[self.member(name, **(member or {})) for name in names],
            **options,
        )


async def revised(world, first, *revisions, **options):
    feedback = [CONTINUE + revision for revision in revisions]
    return (await run(build_graph(world.config(*feedback, **options)), {"plan": first})).state


@pytest.mark.parametrize(
    "change",
    ["(retries 3)", "(timeout 20s)", "(priority 3)", "(writes x.csv)", "(optional)", "\n\n  Wait."],
)
async def test_a_failed_step_runs_again_whatever_of_it_changes(change):
    world = World(a=1)
    state = await revised(world, "- [ ] 1. Fetch @a\n", f"- [ ] 1. Fetch @a {change}\n")
    assert state["outcome"] == "completed"
    assert len(world.done) == 2
    assert (len(set(world.keys)) == 1) == ("Wait" not in change)


@pytest.mark.parametrize(
    ("revisions", "done"),
    [
        (["1. Fetch @b", "1. Fetch @a"], ["Fetch/a", "Fetch/b", "Fetch/a"]),
        (["1. Get @a", "1. Fetch @a"], ["Fetch/a", "Get/a", "Fetch/a"]),
        (["2. Other @b\n- [-] 1. Fetch @a", "1. Fetch @a"], ["Fetch/a", "Other/b", "Fetch/a"]),
        (["1. Fetch @a @b"], ["Fetch/a", "Fetch/a", "Fetch/b"]),
    ],
    ids=["specialist and back", "wording and back", "removed and added", "joined"],
)
async def test_a_step_that_comes_back_is_not_answered_by_its_old_failure(revisions, done):
    world = World(a=2 if "Get" in revisions[0] else 1, b="Fetch @b" in revisions[0])
    lines = [f"- [ ] {revision}\n" for revision in revisions]
    state = await revised(world, "- [ ] 1. Fetch @a\n", *lines)
    assert state["outcome"] == "completed"
    assert sorted(f"{text}/{name}" for _, text, name in world.done) == sorted(done)


async def test_a_revision_leaves_the_work_of_other_steps_alone():
    world = World(b=1)
    first = "- [ ] 1. One @a\n- [ ] 2. Two @b (after 1)\n"
    state = await revised(world, first, first.replace("after 1", "after 1; retries 1"))
    assert state["outcome"] == "completed"
    assert [step for step, _, _ in world.done] == [1, 2, 2]


async def test_a_step_that_is_opened_again_has_all_its_retries_again():
    world = World(a=3)
    limits = Limits(step_retries=1, max_stalls=6)
    state = await revised(
        world, "- [ ] 1. Fetch @a\n", "- [ ] 1. Fetch @a (priority 2)\n", limits=limits
    )
    assert (state["outcome"], len(world.done)) == ("completed", 4)


async def test_a_person_who_gives_a_failed_step_more_time_at_the_gate_is_heard():
    slow = asyncio.Event()

    async def work(context):
        if context.plan_step.timeout < 1:
            await slow.wait()
        return "done"

    revision = CONTINUE + "- [ ] 1. Fetch @a (timeout 20ms)\n"
    model = ScriptedModel({"feedback": [revision, COMPLETE]})
    config = Team(
        host=Host(model=model),
        specialists=[Specialist(name="a", intended_use="Works.", run=work, effects="pure")],
        approval="revisions",
        limits=Limits(step_retries=0),
    )
    graph = build_graph(config, checkpointer=InMemorySaver())
    await run(graph, {"plan": "- [ ] 1. Fetch @a (timeout 10ms)\n"}, config=THREAD)
    edit = {"action": "edit", "plan": "- [ ] 1. Fetch @a (timeout 20s)\n"}
    state = (await run(graph, await said(graph, edit, THREAD), config=THREAD)).state
    assert state["outcome"] == "completed"


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def build(request, tmp_path):
    """Build graphs on a place where runs are kept."""
    if request.param == "memory":
        saver = InMemorySaver()
        yield lambda config: build_graph(config, checkpointer=saver)
        return
    where = str(tmp_path / "runs.db")
    if request.param == "postgres":
        where = request.getfixturevalue("postgres_database")
    async with open_storage(where) as storage:
        yield lambda config: build_graph(config, storage=storage)


async def point(graph, *, completed):
    """The checkpoint before a round with these steps completed."""
    async for snapshot in graph.aget_state_history(THREAD):
        plan = snapshot.values.get("current_plan")
        if snapshot.next == ("plan_execution",) and plan.completed_steps == completed:
            return snapshot
    raise AssertionError("There is no such checkpoint.")


async def forked_with_another_result(graph, world):
    """Do the chain, then go on from its first step with another result."""
    await run(graph, {"plan": CHAIN}, config=THREAD)
    at = await point(graph, completed=(1,))
    old = at.values["current_specialist_results"]["1/a"]
    edited = {"1/a": old.replace(result=AIMessage("EDITED"))}
    fork = await graph.aupdate_state(at.config, {"current_specialist_results": edited})
    world.done.clear()
    return await graph.ainvoke(None, fork)


async def test_a_fork_with_another_result_does_again_what_is_given_it(build):
    world = World()
    graph = build(world.config(round_scope="ready"))
    state = await forked_with_another_result(graph, world)
    assert [step for step, _, _ in world.done] == [2]
    assert state["current_specialist_results"]["2/a"].text == "Two by a from ['EDITED']"
    assert len(set(world.keys)) == 3


@pytest.mark.parametrize("round_scope", ["plan", "ready"])
async def test_a_fork_with_another_step_does_it_and_what_comes_after_it(build, round_scope):
    world = World()
    graph = build(world.config(round_scope=round_scope))
    await run(graph, {"plan": CHAIN}, config=THREAD)
    at = await point(graph, completed=())
    other = parse_plan_from_markdown(CHAIN.replace("One", "Other"))
    fork = await graph.aupdate_state(at.config, {"current_plan": other})
    world.done.clear()
    state = await graph.ainvoke(None, fork)
    assert [text for _, text, _ in world.done] == ["Other", "Two"]
    assert state["current_specialist_results"]["2/a"].text == (
        "Two by a from ['Other by a from []']"
    )


async def test_a_replay_of_an_open_run_does_nothing_twice(build):
    world = World(b=1)
    graph = build(world.config(CONTINUE + CHAIN + "- [ ] 3. Three @b\n", approval="revisions"))
    plan = CHAIN + "- [ ] 3. Three @b (retries 0)\n"
    assert waiting_for((await run(graph, {"plan": plan}, config=THREAD)).state)
    done, at = len(world.done), await point(graph, completed=())
    state = await graph.ainvoke(None, at.config)
    # Its failure answers too: nothing of the step has changed.
    assert state["current_plan"].step(3).status is StepStatus.FAILED
    assert len(world.done) == done == 3


async def test_a_fork_that_gives_a_failed_step_more_retries_runs_it(build):
    world = World(b=1)
    graph = build(world.config(CONTINUE + "- [ ] 1. One @b (retries 1)\n", approval="revisions"))
    await run(graph, {"plan": "- [ ] 1. One @b\n"}, config=THREAD)
    at = await point(graph, completed=())
    more = parse_plan_from_markdown("- [ ] 1. One @b (retries 2)\n")
    fork = await graph.aupdate_state(at.config, {"current_plan": more})
    state = await graph.ainvoke(None, fork)
    assert state["outcome"] == "completed"
    assert len(world.done) == 2
    assert len(set(world.keys)) == 1


@pytest.mark.parametrize("failed", [0, 1], ids=["completed", "failed"])
async def test_a_person_who_opens_a_settled_step_has_it_done_again(build, failed):
    world = World(a=failed)
    graph = build(world.config())
    await run(graph, {"plan": "- [ ] 1. One @a\n"}, config=THREAD)
    plan = parse_plan_from_markdown("- [ ] 1. One @a\n")
    assert plan.step(1).status is StepStatus.PENDING
    await graph.aupdate_state(THREAD, {"current_plan": plan}, as_node="plan_creation")
    state = await graph.ainvoke(None, THREAD)
    assert state["outcome"] == "completed"
    assert len(world.done) == 2
    # Services see other work only where the first was done.
    assert len(set(world.keys)) == 2 - failed


async def test_unsafe_work_with_other_inputs_asks_before_it_is_done_once_more(build):
    world = World()
    graph = build(world.config(round_scope="ready", member={"effects": "unsafe"}))
    state = await forked_with_another_result(graph, world)
    (question,) = waiting_for(state)
    assert (question.kind, question.key) == ("unknown_outcome", "2/a/1")
    assert question.text.startswith("Step 2 at @a was done in attempt 1, and is to be done again")
    assert world.done == []
    state = await graph.ainvoke(await said(graph, "run again", THREAD), THREAD)
    assert state["current_specialist_results"]["2/a"].text == "Two by a from ['EDITED']"
    assert [step for step, _, _ in world.done] == [2]


@pytest.mark.parametrize(
    ("answer", "text", "outcome"),
    [
        ("done", "One by a from []", "completed"),
        ("it is done: receipt 7", "receipt 7", "completed"),
        ("fail: not twice", "", "failed"),
    ],
)
async def test_unsafe_work_that_is_opened_again_may_stay_as_it_was(answer, text, outcome):
    world = World()
    async with open_storage(":memory:") as storage:
        graph = build_graph(world.config(member={"effects": "unsafe"}), storage=storage)
        await run(graph, {"plan": "- [ ] 1. One @a\n"}, config=THREAD, run_id="r")
        plan = parse_plan_from_markdown("- [ ] 1. One @a\n")
        await graph.aupdate_state(THREAD, {"current_plan": plan}, as_node="plan_creation")
        assert waiting_for(await graph.ainvoke(None, THREAD))
        state = await graph.ainvoke(await said(graph, answer, THREAD), THREAD)
        ledger = await storage.log.ledger("r")
    result = state["current_specialist_results"]["1/a"]
    assert (result.text, state["outcome"], len(world.done)) == (text, outcome, 1)
    assert [(each.number, each.outcome) for each in ledger] == [(1, "done")]


async def test_where_nobody_is_asked_unsafe_work_is_not_done_once_more():
    world = World()
    config = world.config(member={"effects": "unsafe"}, on_doubt="fail")
    graph = build_graph(config, checkpointer=InMemorySaver())
    await run(graph, {"plan": "- [ ] 1. One @a\n"}, config=THREAD)
    plan = parse_plan_from_markdown("- [ ] 1. One @a\n")
    await graph.aupdate_state(THREAD, {"current_plan": plan}, as_node="plan_creation")
    state = await graph.ainvoke(None, THREAD)
    error = state["current_specialist_results"]["1/a"].error
    assert "Step 1 at @a was done in attempt 1. It was opened again" in error
    assert len(world.done) == 1


class Bank:
    """A tool that pays, and a model that fails after it."""

    def __init__(self):
        self.paid = []

    def clerk(self, *replies, **tool):
        async def pay(amount: int) -> str:
            """Pay an amount."""
            self.paid.append(amount)
            return f"paid {amount}"

        model = ScriptedModel({"step 1": list(replies), "step 2": list(replies)})
        return Specialist(
            name="clerk", intended_use="Pays.", chat_model=model, tools=[pay], **tool
        ), model


PAY = AIMessage("", tool_calls=[{"name": "pay", "args": {"amount": 5}, "id": "1"}])


async def test_a_failed_tool_loop_that_is_opened_again_goes_on_and_pays_nothing_twice():
    bank = Bank()
    clerk, model = bank.clerk(PAY, "---\nstatus: failed\n---\nNo receipt.", "It is paid.")
    replies = {"feedback": [CONTINUE + "- [ ] 1. Pay @clerk (priority 2)\n", COMPLETE]}
    config = Team(
        host=Host(model=ScriptedModel(replies)),
        specialists=[clerk],
        limits=Limits(step_retries=0),
    )
    state = (await run(build_graph(config), {"plan": "- [ ] 1. Pay @clerk\n"})).state
    assert state["current_specialist_results"]["1/clerk"].text == "It is paid."
    assert bank.paid == [5]
    assert len(model.calls) == 3


async def test_a_tool_loop_that_paid_asks_before_it_is_done_once_more():
    bank = Bank()
    clerk, _ = bank.clerk(PAY, "It is paid.", PAY, "It is paid again.")
    config = Team(
        host=Host(model=ScriptedModel({"feedback": always(COMPLETE)})),
        specialists=[clerk],
    )
    graph = build_graph(config, checkpointer=InMemorySaver())
    await run(graph, {"plan": "- [ ] 1. Pay @clerk\n"}, config=THREAD)
    plan = parse_plan_from_markdown("- [ ] 1. Pay @clerk\n")
    await graph.aupdate_state(THREAD, {"current_plan": plan}, as_node="plan_creation")
    state = await graph.ainvoke(None, THREAD)
    (question,) = waiting_for(state)
    assert "was done in attempt 1" in question.text
    assert bank.paid == [5]
    state = await graph.ainvoke(await said(graph, "run again", THREAD), THREAD)
    assert state["current_specialist_results"]["1/clerk"].text == "It is paid again."
    assert bank.paid == [5, 5]


async def partly(member):
    """A run whose step comes to a part, and is revised to do the rest."""
    revision = CONTINUE + "- [ ] 1. Pay the rest @clerk\n"
    model = ScriptedModel({"feedback": [revision, always(COMPLETE)]})
    config = Team(host=Host(model=model), specialists=[member])
    graph = build_graph(config, checkpointer=InMemorySaver())
    return (await run(graph, {"plan": "- [ ] 1. Pay @clerk\n"}, config=THREAD)).state


async def test_who_did_a_part_with_tools_goes_on_with_the_rest_unasked():
    bank = Bank()
    clerk, _ = bank.clerk(PAY, "---\nstatus: partial\n---\nHalf of it.", PAY, "It is paid.")
    state = await partly(clerk)
    assert (state["outcome"], bank.paid) == ("completed", [5, 5])


async def test_work_that_is_declared_unsafe_asks_after_a_part_of_it_too():
    half = SpecialistResult(status=ExecutionStatus.PARTIAL, result=AIMessage("Half."))
    clerk = Specialist(
        name="clerk", intended_use="Pays.", run=lambda context: half, effects="unsafe"
    )
    (question,) = waiting_for(await partly(clerk))
    assert "was done in attempt 1" in question.text


async def test_a_step_tells_what_it_waits_for_the_same_after_an_interrupt(build):
    """LangGraph does not run again what it has a write of: its results come from the record."""
    seen = []

    def work(context):
        step = context.plan_step.id
        if step == 4:
            interrupt("Which?")
        seen.append((step, dict(context.inputs)))
        return f"r{step}"

    def fails(context):
        return SpecialistResult(status=ExecutionStatus.FAILED, error="no net", retry=False)

    plan = (
        "- [ ] 1. One @bad (optional)\n- [ ] 2. Two @a (after 1)\n"
        "- [ ] 3. Three @a (if 1 completed)\n- [ ] 4. Four @a (after 1, 2, 3)\n"
    )
    config = Team(
        host=Host(model=ScriptedModel({"feedback": always(COMPLETE)})),
        specialists=[
            Specialist(name="a", intended_use="Works.", run=work),
            Specialist(name="bad", intended_use="Fails.", run=fails),
        ],
    )
    graph = build(config)
    await run(graph, {"plan": plan}, config=THREAD)
    state = (await run(graph, await said(graph, "this", THREAD), config=THREAD)).state
    assert seen == [(2, {}), (4, {2: "r2"})]
    assert state["outcome"] == "completed"
