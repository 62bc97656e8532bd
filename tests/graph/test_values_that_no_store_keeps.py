"""Numbers above 64 bits, NUL, halves of characters: refused with a sentence or made harmless."""

import pytest
from langchain_core.messages import AIMessage
from langgraph.types import Command

from replan import (
    ExecutionStatus,
    Host,
    InputError,
    Limits,
    PlanDocumentError,
    Specialist,
    SpecialistResult,
    StorageError,
    Team,
    ask_user,
    build_graph,
    open_runtime,
    open_storage,
    run,
)
from replan.testing import ScriptedModel, always
from scripts import DONE, THREAD
from states import said

PLAN = "- [ ] 1. Work @worker\n- [ ] 2. Rest @worker\n"
BIG = "- [ ] 1. Pay @worker\n\n  ```yaml\n  amount: 100000000000000000000000\n  ```\n"
DEEP = []
for _ in range(400):
    DEEP = [DEEP]
ODD = [10**23, -(10**23), "a\0b", "a\ud800b", {"a": [10**23]}, {"a\0b": 1}, DEEP]


@pytest.fixture
async def team(where):
    """Make a graph with a specialist."""
    replies = {
        "think": always(f"---\nnext_action: create_plan\n---\n{BIG}"),
        "feedback": always(DONE),
        "final_answer": always("Done."),
        "plan_creation": always(BIG),
    }
    with ScriptedModel(replies) as model:
        async with open_storage(where, patience=1) as storage:

            def made(work=lambda context: "done"):
                team = [Specialist(name="worker", intended_use="Works.", run=work)]
                host = Host(model=model)
                config = Team(host=host, specialists=team, limits=Limits(step_retries=0))
                return build_graph(config, storage=storage)

            yield made


async def test_a_name_that_cannot_be_kept_is_refused_as_an_answer_to_a_runtime():
    member = Specialist(name="worker", intended_use="Works.", run=lambda _: f"{ask_user('Which?')}")
    async with open_runtime(Team("offline", [member]), storage=":memory:") as runtime:
        begun = await runtime.start({"plan": "- [ ] 1. Work @worker\n"})
        await begun
        for answers in ({"a\ud800b": 1}, {"1/worker/1": {"a\ud800b": 1}}):
            with pytest.raises(InputError):
                await runtime.answer(begun.run_id, answers)
        assert (await begun.report()).outcome == "waiting"


async def is_usable(graph, config=THREAD):
    return (await run(graph, {"plan": PLAN}, config=config)).state["outcome"] == "completed"


async def test_an_answer_that_cannot_be_kept_leaves_the_question_open(team):
    def work(context):
        return f"{ask_user('How much?')}" if context.plan_step.id == 1 else "done"

    graph = team(work)
    assert (await run(graph, {"plan": PLAN}, config=THREAD)).state["outcome"] == "waiting"
    for given in [*ODD, *({"1/worker/1": value} for value in ODD)]:
        with pytest.raises(InputError, match="cannot be kept"):
            await run(graph, Command(resume=given), config=THREAD)
        with pytest.raises(InputError, match="cannot be kept"):
            await graph.ainvoke(Command(resume=given), THREAD)
    state = (await run(graph, Command(resume={"1/worker/1": "ten"}), config=THREAD)).state
    assert state["outcome"] == "completed"
    assert state["current_specialist_results"]["1/worker"].text == "ten"


async def test_an_input_that_cannot_be_kept_leaves_the_thread_usable(team):
    graph = team()
    extras = [AIMessage("x", additional_kwargs={"value": value}) for value in ODD]
    for given in (
        *({"plan": PLAN, "answers": {"1/worker/1": value}} for value in ODD),
        *({"plan": PLAN, "messages": [("user", "x"), extra]} for extra in extras),
    ):
        with pytest.raises(InputError, match="cannot be kept"):
            await run(graph, given, config=THREAD)
        with pytest.raises(InputError, match="cannot be kept"):
            await graph.ainvoke(given, THREAD)
    assert await is_usable(graph)


async def test_a_name_that_cannot_be_kept_is_refused(team):
    graph = team()
    for odd in ("\0", "\ud800"):
        elsewhere = {"configurable": {"thread_id": f"t{odd}"}}
        for config, name in ((THREAD, f"a{odd}"), (elsewhere, None)):
            with pytest.raises(InputError, match=r"The (run|thread)_id .*cannot"):
                await run(graph, {"plan": PLAN}, config=config, run_id=name)
    assert await is_usable(graph)


REFUSED = [
    (BIG, r"line 4, column 3: .* 64 bits"),
    ("- [ ] 1. A @worker (priority 99999999999999999999)\n", "line 1"),
    ("- [ ] 1. A @worker (retries 99999999999999999999)\n", "line 1"),
    ("- [ ] 99999999999999999999. A @worker\n", "line 1"),
    ("- [ ] 1. A\ud800 @worker\n", "line 1"),
    ("- [ ] 1. A\0B @worker\n", "The plan cannot be kept"),
]


async def test_a_plan_that_cannot_be_kept_is_refused(team):
    graph = team()
    for plan, error in REFUSED:
        with pytest.raises((PlanDocumentError, InputError), match=error):
            await run(graph, {"plan": plan}, config=THREAD)
    assert await is_usable(graph)


async def test_a_model_that_writes_such_a_number_ends_no_run(team):
    seen = []

    def work(context):
        seen.append(context.parameters)
        return "done"

    graph = team(work)
    state = (await run(graph, "Pay.", config=THREAD)).state
    assert state["outcome"] == "completed"
    assert 10**23 not in [value for parameters in seen for value in parameters.values()]


GIVEN = {
    1: "a\0b",
    2: "a\ud800b",
    3: AIMessage(
        "x", usage_metadata={"input_tokens": 10**19, "output_tokens": 1, "total_tokens": 1}
    ),
    4: SpecialistResult(result=AIMessage("x", additional_kwargs={"value": 10**23})),
    5: SpecialistResult(status=ExecutionStatus.FAILED, error="a\0\ud800", retry=False),
}


async def test_what_a_specialist_gives_is_made_harmless(team):
    graph = team(lambda context: GIVEN[context.plan_step.id])
    plan = "".join(f"- [ ] {step}. Work @worker\n" for step in GIVEN)
    state = (await run(graph, {"plan": plan}, config=THREAD)).state
    assert state["outcome"] == "partial"
    results = state["current_specialist_results"].values()
    said = {each.step_id: (each.text or each.error).replace("\ufffd", "") for each in results}
    assert said == {1: "ab", 2: "ab", 3: "x", 4: "x", 5: "a"}
    again = (await run(team(), {"plan": PLAN}, config=THREAD)).state
    assert again["outcome"] == "completed"


@pytest.mark.parametrize("odd", ["Was \ud800 it?", "Was \0it?"], ids=["half", "NUL"])
async def test_a_question_with_such_a_text_is_asked_once(team, odd):
    graph = team(lambda context: f"{ask_user(odd)}")
    await run(graph, {"plan": "- [ ] 1. Ask @worker\n"}, config=THREAD)
    state = (await run(graph, await said(graph, "yes", THREAD), config=THREAD)).state
    assert state["outcome"] == "completed"
    assert [each.text.replace("\ufffd ", "") for each in state["questions"].values()] == ["Was it?"]


async def test_what_comes_past_every_gate_is_no_crash_of_the_serializer(team):
    graph = team()
    await run(graph, {"plan": PLAN}, config=THREAD)
    with pytest.raises(StorageError, match="cannot be kept there"):
        await graph.aupdate_state(THREAD, {"max_rounds": 10**23})
    assert await is_usable(graph)


async def test_postgres_does_not_call_itself_away_because_of_a_nul(postgres_database):
    async with open_storage(postgres_database, patience=1) as storage:
        config = {"configurable": {"thread_id": "a\0b", "checkpoint_ns": ""}}
        with pytest.raises(StorageError, match="cannot be kept there"):
            await storage.checkpointer.aget_tuple(config)
        with pytest.raises(StorageError, match="cannot be kept there"):
            await storage.log.note("a\0b", "key", "value")
