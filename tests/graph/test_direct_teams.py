"""A team without a host: a run is the one step of its one specialist, and its result the answer."""

import asyncio
import json
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from made_pipelines import FourDeep
from replan import (
    ExecutionContext,
    Limits,
    Specialist,
    Team,
    ask_user,
    build_graph,
    open_runtime,
    open_storage,
    run,
)
from replan.errors import TeamError
from replan.jobs.spec.action_spec import ActionSpec
from replan.jobs.spec.job_spec import JobCommand, JobSpec
from replan.jobs.spec.slot import Slot
from replan.sessions import AgentContext, ClientAgentAdapter, build_agent
from replan.testing import ScriptedModel


def paint(context: ExecutionContext) -> str:
    return f"{context.task}: {ask_user('Which colour?')}"


def painter() -> Team:
    return Team([Specialist("painter", "Paints.", run=paint, effects="pure")])


async def test_a_run_is_the_step_and_its_questions_and_results_are_the_runs(tmp_path):
    async with open_runtime(painter(), storage=tmp_path / "runs.sqlite") as here:
        waits = await here.run("Paint the hall.\n\nWith care: `all` of it.", run_id="r")
        assert (waits.outcome, [ask.text for ask in waits.pending_questions]) == (
            "waiting",
            ["Which colour?"],
        )
        result = await (await here.answer("r", "Blue"))
        (listed,) = [each.run_id for each in await here.runs()]
        kinds = [each.type async for each in here.events("r")]
    assert (result.outcome, result.usage.calls, listed) == ("completed", 0, "r")
    assert result.text == "Paint the hall.\n\nWith care: `all` of it.: Blue"
    assert {"plan_created", "specialist_invoked", "task_completed"} <= set(kinds)


async def test_a_run_has_three_super_steps_and_three_more_for_an_answer():
    graph = build_graph(painter(), checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    begun = {"messages": [("user", "Paint the hall")]}
    nodes = list[str]()
    for given in (begun, Command(resume={"1/painter/1": "Blue"})):
        async for part in graph.astream(given, config, stream_mode="updates"):
            nodes += part
    step = ["specialist_painter", "result_collector"]
    assert nodes == ["begin", *step, "__interrupt__", "user_input", *step]
    assert (await graph.aget_state(config)).values["final_answer"].text == "Paint the hall: Blue"


async def test_a_step_that_fails_is_a_run_that_failed_and_says_why():
    def fail(_: ExecutionContext) -> str:
        raise ValueError("no paint")

    result = await run(Team([Specialist("painter", "Paints.", run=fail)]), "Paint.")
    assert result.outcome == "failed"
    assert "no paint" in result.text


async def test_its_value_is_the_output_of_the_run():
    def count(_: ExecutionContext) -> Any:
        return [1, 2]

    team = Team([Specialist("counter", "Counts.", run=count, output_type=list[int])])
    assert (await run(team, "Count.")).output == [1, 2]
    plain = Team([Specialist("counter", "Counts.", run=count)])
    assert (await run(plain, "Count.", output_type=list[int])).output == [1, 2]


async def test_nothing_is_kept_back_for_an_answer_that_nobody_writes():
    with ScriptedModel({"specialist": "Tea."}) as model:
        limits = Limits(max_model_calls=1)
        team = Team([Specialist("writer", "Writes.", chat_model=model)], limits=limits)
        result = await run(team, "Praise tea.")
    assert (result.outcome, result.text) == ("completed", "Tea.")


async def test_its_agent_takes_turns_and_begins_anew_after_an_answer():
    agent, context = build_agent(painter()), AgentContext(session_id="s")
    texts = ["Paint the hall", "Blue", "Paint the attic", "Grey"]
    responses = []
    for text in texts:
        result = await agent.process(text, context)
        context = context.apply(result.context_updates)
        responses.append(result.response)
    assert responses[::2] == ["Which colour?"] * 2
    assert responses[1::2] == ["Paint the hall: Blue", "Paint the attic: Grey"]


async def test_a_job_asks_for_what_it_needs_and_its_result_is_the_answer():
    spec = JobSpec(
        "shop",
        slots=[Slot("what", question="What?")],
        commands=[JobCommand("order", needs=["what"], action="order_it")],
        actions=[ActionSpec("order_it", run=lambda what: f"Ordered {what}.", effects="keyed")],
    )
    team = Team([Specialist("shop", "Sells.", job=spec)])
    async with open_runtime(team, storage=":memory:") as here:
        waits = await here.run("order", run_id="r")
        assert waits.outcome == "waiting"
        result = await (await here.answer("r", "tea"))
    assert result.outcome == "completed"
    assert result.text.endswith("Result: Ordered tea.")
    assert result.output["collected_info"] == {"what": "tea"}


async def test_what_a_job_cannot_read_of_a_request_or_an_answer_is_told():
    picture = {"type": "image", "base64": "aa", "mime_type": "image/png"}
    spec = JobSpec(
        "paint",
        slots=[Slot("colour", question="Which colour?")],
        commands=[JobCommand("paint", needs=["colour"], action="paint", words=["paint"])],
        actions=[ActionSpec("paint", run=lambda colour: f"It is {colour}", effects="pure")],
        confirm=False,
    )
    team = Team([Specialist("clerk", "Paints.", job=spec)])
    graph = build_graph(team, checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    asked = [{"type": "text", "text": "paint"}, picture]
    first = await run(graph, {"messages": [("user", asked)]}, config=config)
    assert first.outcome == "waiting"
    assert first.warnings == ("@clerk reads texts alone, so it was not given: image.",)
    said = [{"type": "text", "text": "blue"}, picture]
    done = await run(graph, Command(resume={"1/clerk/1": said}), config=config)
    assert (done.outcome, "It is blue" in done.text) == ("completed", True)
    assert "A job reads texts alone, so of an answer it was not given: image." in done.warnings


async def test_a_pipeline_is_walked_to_its_end():
    with ScriptedModel({}):
        result = await run(Team([Specialist("deep", "Goes deep.", pipeline=FourDeep)]), "Begin.")
    assert result.outcome == "completed", result.text


def test_several_specialists_need_a_host():
    two = [Specialist(name, "Works.", run=paint) for name in ("a", "b")]
    with pytest.raises(TeamError, match="host") as refused:
        Team(two)
    assert "several specialists" in str(refused.value)
    with pytest.raises(TeamError, match="host"):
        Team(specialists=two, limits=Limits(max_rounds=3))


async def test_the_secrets_of_a_job_are_in_no_context_while_it_waits():
    used: list[str] = []

    def book(target: str, pin: str) -> str:
        used.append(pin)
        return f"Booked {target}."

    spec = JobSpec(
        "travel",
        slots=[Slot("pin", question="Which PIN?", secret=True), Slot("target", question="To?")],
        commands=[JobCommand("book", needs=["pin", "target"], action="book_it")],
        actions=[ActionSpec("book_it", run=book, effects="keyed")],
    )
    agent = build_agent(Team([Specialist("booker", "Books.", job=spec)]), context_key="k" * 16)
    context, texts = AgentContext(session_id="s"), list[str]()
    for said in ("book", "4821", "Oslo"):
        result = await agent.process(said, context)
        context = context.apply(result.context_updates)
        texts.append(json.dumps(context.to_dict()))
    assert (result.error, used) == (None, ["4821"])
    assert not any("4821" in text for text in texts)
    assert [each.content for each in context.dialogue_history if each.role == "user"] == [
        "***",
        "***",
        "***",
    ]


def tea_job(**options: Any) -> JobSpec:
    return JobSpec(
        "tea",
        slots=[
            Slot("kind", question="Which tea?", choices=["green", "black"]),
            Slot("pin", question="Your PIN?", secret=True, pattern=r"PIN-\d{6}"),
        ],
        commands=[JobCommand("brew", needs=["kind", "pin"], action="brew_it")],
        actions=[ActionSpec("brew_it", run=lambda kind, pin: f"{kind} tea, {len(pin)}")],
        **options,
    )


def tea_agent(**options: Any) -> Any:
    team = Team([Specialist("tea", "Brews.", job=tea_job(**options))])
    return build_agent(team, context_key="k" * 16)


async def test_the_job_of_a_session_is_one_run_and_its_secrets_are_in_no_file(tmp_path):
    said = ("some tea, pin: PIN-471147", "black", "kind: green", "pin: PIN-481248", "yes")
    async with open_storage(tmp_path / "runs.db") as storage:
        for place, text in enumerate(said):
            # Each turn is taken in another process.
            client = ClientAgentAdapter(storage, tea_agent())
            result = await client.process("s", text, turn_id=str(place))
            assert result.success, result.error
            assert (await client.process("s", text, turn_id=str(place))).response == result.response
        (run,) = await storage.runs.recent(9, {"session": "s"})
        assert (run.title, run.outcome) == ("tea", "completed")
        job = (await client.export("s")).project_state["job"]
        assert job["status"] == "completed"
        assert job["collected_info"] == {"kind": "green", "pin": "***"}
    assert result.response.endswith("Result: green tea, 10")
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert not [secret for secret in (b"PIN-471147", b"PIN-481248") if secret in kept]


async def test_without_a_key_any_process_goes_on_with_the_job_of_a_stored_session():
    team = Team([Specialist("tea", "Brews.", job=tea_job(max_asks=1))])
    said = ("some tea, pin: PIN-471147", "hm", "kind: green", "pin: PIN-471147", "yes")
    async with open_storage(":memory:") as storage:
        for text in said:
            client = ClientAgentAdapter(storage, build_agent(team))
            result = await client.process("s", text)
            assert result.success, result.error
            context = await client.export("s")
            assert "PIN-471147" not in json.dumps(context.project_state.get("job"))
    # The run that failed took the secret with it.
    assert result.response.endswith("Result: green tea, 10")


async def test_a_team_inside_an_action_does_not_take_the_job_of_the_session():
    spec = JobSpec(
        "cup",
        slots=[Slot("size", question="Which size?")],
        commands=[JobCommand("wash", needs=["size"], action="wash_it")],
        actions=[ActionSpec("wash_it", run=lambda size: f"a {size} cup", effects="keyed")],
    )
    inner = Team([Specialist("cup", "Washes.", job=spec)])

    async def brew(kind: str) -> str:
        washed = await run(inner, "size: small")
        return f"{kind} tea in {washed.output['collected_info']['size']}"

    outer = JobSpec(
        "tea",
        slots=[Slot("kind", question="Which tea?")],
        commands=[JobCommand("brew", needs=["kind"], action="brew_it")],
        actions=[ActionSpec("brew_it", run=brew, effects="keyed")],
    )
    agent, context = (
        build_agent(Team([Specialist("tea", "Brews.", job=outer)])),
        AgentContext(session_id="s"),
    )
    for kind in ("green", "black"):
        result = await agent.process(f"kind: {kind}", context)
        context = context.apply(result.context_updates)
        assert result.response.endswith(f"Result: {kind} tea in small"), result


async def test_no_prompt_is_on_record_of_a_job_with_secrets_in_a_session(tmp_path):
    spec = JobSpec(
        "safe",
        slots=[Slot("word", question="Which word?", secret=True, longest=9)],
        commands=[JobCommand("open", needs=["word"], action="open_it")],
        actions=[ActionSpec("open_it", run=lambda word: f"{word:.0}open", effects="unsafe")],
    )
    with ScriptedModel({"extract": "word: rosebud"}) as model:
        team = Team([Specialist("safe", "Opens.", job=spec, extraction_model=model)])
        async with open_storage(tmp_path / "runs.db") as storage:
            client = ClientAgentAdapter(storage, build_agent(team, context_key="k" * 16))
            said = "It is the one that he says at the end of the film, which is rosebud"
            result = await client.process("s", said)
    assert result.response.startswith("Please confirm: open, with\n- word: ***")
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"rosebud" not in kept


async def test_the_first_words_to_a_job_with_secrets_outlive_a_kill(tmp_path):
    begun = asyncio.Event()

    spec = tea_job()

    async def wait(**_: Any) -> None:
        begun.set()
        await asyncio.Event().wait()

    cut = spec.replace(confirm=False, actions=[ActionSpec("brew_it", run=wait, effects="keyed")])
    said = "green, pin: PIN-471147"
    async with open_storage(tmp_path / "runs.db") as storage:
        team = Team([Specialist("tea", "Brews.", job=cut)])
        client = ClientAgentAdapter(storage, build_agent(team, context_key="k" * 16))
        turn = asyncio.ensure_future(client.process("s", said, turn_id="1"))
        await begun.wait()
        turn.cancel()
        await asyncio.wait({turn})
    async with open_storage(tmp_path / "runs.db") as storage:
        team = Team([Specialist("tea", "Brews.", job=spec.replace(confirm=False))])
        client = ClientAgentAdapter(storage, build_agent(team, context_key="k" * 16))
        # Who takes the turn again, such as a terminal, may not know the words.
        result = await client.process("s", "tea", turn_id="1")
    assert result.response.endswith("Result: green tea, 10")


async def test_what_is_sealed_for_a_session_is_used_by_nobody_else(tmp_path):
    async with open_storage(tmp_path / "runs.db") as storage:
        client = ClientAgentAdapter(storage, tea_agent())
        await client.process("s", "some tea, pin: PIN-471147")
        (run,) = await storage.runs.recent(1)
        team = Team([Specialist("tea", "Brews.", job=tea_job())])
        async with open_runtime(team, storage=storage) as runtime:
            result = await (await runtime.answer(run.run_id, "green"))
    # Who is none of its turns is asked for everything.
    (asked,) = result.pending_questions
    assert "I also need: pin" in asked.text


async def test_the_next_message_of_a_session_goes_on_with_its_job_until_it_is_given_up():
    agent, context = tea_agent(max_asks=1), AgentContext(session_id="s")

    async def says(text: str, **options: Any) -> str:
        nonlocal context
        result = await agent.process(text, context, **options)
        context = context.apply(result.context_updates)
        outcomes.append(result.metadata["outcome"])
        return result.response

    outcomes = list[Any]()
    await says("green")
    assert (await says("hm")).endswith("What you have told me is kept; write again to go on.")
    job: Any = context.project_state["job"]
    assert (job["status"], job["error_code"]) == ("failed", "no_progress")
    assert "Shall I do it?" in await says("pin: PIN-471147")
    assert (await says("yes")).endswith("Result: green tea, 10")
    assert await says("thanks") == "This is done already. Say what you need to begin anew."
    assert outcomes == ["waiting", "failed", "waiting", "completed", "completed"]
    # A new request begins with nothing of the old one.
    assert "Which tea?" in await says("pin: PIN-471147", new_request=True)
    new: Any = context.project_state["job"]
    assert (new["id"] != job["id"], new["collected_info"]) == (True, {"pin": "***"})


async def test_a_step_that_failed_is_retried_as_in_every_run(tmp_path):
    fails = [True]

    def work(_: ExecutionContext) -> str:
        if fails:
            raise TimeoutError("not now")
        return "Done."

    team = Team([Specialist("worker", "Works.", run=work, effects="pure")])
    async with open_runtime(team, storage=tmp_path / "runs.sqlite") as here:
        assert (await here.run("Work.", run_id="r")).outcome == "failed"
        fails.clear()
        result = await (await here.retry("r", 1))
    assert (result.outcome, result.text) == ("completed", "Done.")
