"""Pipelines: phases, rounds, retries, failures, and what a kill leaves."""

import asyncio
from collections import Counter
from typing import Any

import pytest

import made_pipelines as pipelines
from made_pipelines import (
    FourDeep,
    Killed,
    KillingThreads,
    ModelHandler,
    WritingHandler,
    ids,
    texts,
)
from replan.assembly.pipelines import run_pipeline
from replan.errors import ConfigurationError, PhaseError, StaleThreadError, ThreadError
from replan.pipelines.phases.agent_and_handler import BaseAgent, StateHandler
from replan.pipelines.response import MessageUpdate, Response, SubThreadRequest
from replan.pipelines.sub_threads.interaction_unit import InteractionUnit
from replan.pipelines.sub_threads.sub_thread_agent import SubThreadAgent
from replan.pipelines.sub_threads.sub_thread_handlers import (
    SubThreadExecutionHandler,
    SubThreadPreparationHandler,
)
from replan.pipelines.task import Task
from replan.state.pipeline.threads import Thread, chained, require_sub_thread
from replan.storage.memory_threads import MemoryThreads
from replan.testing import ScriptedModel

WHOLE = [
    "hello",
    "one/finish: hello",
    [
        "one/initial_phase: hello",
        "Continue.",
        "two/finish: hello",
        [
            "two/initial_phase: hello",
            "Continue.",
            "three/finish: hello",
            ["three/initial_phase: hello", "Continue.", "three/finish: hello"],
            "Continue.",
            "two/finish: hello",
        ],
        "Continue.",
        "one/finish: hello",
    ],
]


@pytest.fixture(autouse=True)
def fresh() -> None:
    pipelines.worked.clear()
    pipelines.failing.clear()


async def stored(repository: Any) -> Thread:
    thread = await repository.get_thread("main")
    assert thread is not None
    return thread


async def test_four_levels_killed_after_each_write_come_to_the_same_messages() -> None:
    repository = MemoryThreads()
    response = await run_pipeline(FourDeep, "hello", repository=repository)
    thread = await stored(repository)
    assert (response.text, texts(thread)) == ("one/finish: hello", WHOLE)
    for writes in range(thread.revision):
        pipelines.worked.clear()
        repository = MemoryThreads()
        with pytest.raises(Killed):
            await run_pipeline(FourDeep, "hello", repository=KillingThreads(repository, writes))
        response = await run_pipeline(FourDeep, repository=repository)
        thread = await stored(repository)
        assert (response.text, texts(thread)) == ("one/finish: hello", WHOLE), writes
        assert len(set(ids(thread))) == len(ids(thread)), writes
        assert set(pipelines.worked.values()) == {1}, writes


async def test_a_failing_unit_leaves_its_phase_and_its_error_and_can_be_done_again() -> None:
    repository = MemoryThreads()
    pipelines.failing["three/finish"] = ValueError("no figures")
    response = await run_pipeline(FourDeep, "hello", repository=repository)
    assert str(response.failure) == "no figures"
    thread = await stored(repository)
    paths = ["messages.1.meta._thread"]
    paths += [chained(paths[0], 2), chained(chained(paths[0], 2), 2)]
    subs = [require_sub_thread(thread, path) for path in paths]
    assert [sub.phase for sub in subs] == ["deepen", "deepen", "finish"]
    assert all("no figures" in sub.error for sub in (thread, *subs))
    # Without a retry, the third level goes on where it failed.
    pipelines.failing.clear()
    response = await run_pipeline(FourDeep, repository=repository)
    assert texts(await stored(repository)) == WHOLE
    assert pipelines.worked == Counter(
        {
            f"{each}/{phase}": 1
            for each in ("one", "two", "three")
            for phase in ("initial_phase", "finish")
        }
        | {"three/finish": 2}
    )


async def test_a_retry_keeps_the_phase_and_replaces_the_sub_thread_which_is_kept() -> None:
    repository = MemoryThreads()
    await run_pipeline(FourDeep, "hello", repository=repository)
    with pytest.raises(Killed):
        await run_pipeline(FourDeep, retry=True, repository=KillingThreads(repository, 6))
    # The kill in the middle of the retry begins no third sub-thread.
    await run_pipeline(FourDeep, repository=repository)
    thread = await stored(repository)
    assert thread.phase == "execute_subthread"
    (before,) = thread.messages[1].meta["_thread_history"]
    assert texts(before) == WHOLE[2]
    assert texts(thread.messages[1].meta["_thread"]) == WHOLE[2]
    assert len(set(ids(thread))) == len(ids(thread))
    assert set(pipelines.worked.values()) == {2}


@pytest.mark.parametrize("is_failed", [False, True])
async def test_a_new_message_gives_up_what_was_cut_off_and_keeps_it(is_failed: bool) -> None:  # noqa: FBT001
    repository = MemoryThreads()
    if is_failed:
        pipelines.failing["two/finish"] = ValueError("no figures")
        await run_pipeline(FourDeep, "hello", repository=repository)
        pipelines.failing.clear()
    else:
        with pytest.raises(Killed):
            await run_pipeline(FourDeep, "hello", repository=KillingThreads(repository, 20))
    response = await run_pipeline(FourDeep, "bye", repository=repository)
    assert (response.failure, response.text) == (None, "one/finish: bye")
    thread = await stored(repository)
    said = texts(thread)
    assert [each for each in said if isinstance(each, str)] == [
        "hello",
        "Your request is being processed…",
        "bye",
        "one/finish: bye",
    ]
    assert "hello" not in repr(texts(thread.messages[3].meta["_thread"]))
    # What was given up is no longer open, is no word of the bot's, and stays to be looked at.
    given_up = thread.messages[1]
    assert (given_up.is_virtual, "_thread" in given_up.meta) == (True, False)
    (before,) = given_up.meta["_thread_history"]
    assert texts(before)[:2] == ["one/initial_phase: hello", "Continue."]
    thread.remove(thread.messages[0].id)
    assert (thread.phase, thread.error) == ("execute_subthread", "")


async def test_two_on_one_thread_at_once_one_is_refused() -> None:
    class Inner(WritingHandler):
        async def handle(self, task: Task, thread: Thread, agent: BaseAgent) -> Response:
            with pytest.raises(StaleThreadError):
                await run_pipeline(Alone, "me too", repository=repository)
            return Response("done")

    class Alone(BaseAgent):
        async def _initialize_state_handlers(self) -> None:
            self.state_handlers = {"initial_phase": Inner(phase="initial_phase")}

    repository = MemoryThreads()
    response = await run_pipeline(Alone, "hello", repository=repository)
    assert response.text == "done"


class CountingThreads(MemoryThreads):
    """Counts the writes, those that must outlast a failure of power apart."""

    def __init__(self) -> None:
        super().__init__()
        self.writes = Counter[bool]()

    async def save_thread(self, thread: Thread, *, lasting: bool = True) -> None:
        before = thread.revision
        await super().save_thread(thread, lasting=lasting)
        self.writes[lasting] += thread.revision - before


async def test_a_round_has_two_writes_that_outlast_the_power_and_its_last_one_has_one() -> None:
    counts: list[Counter[bool]] = []
    for rounds in (1, 2, 10):
        phases = [f"p{number}" for number in range(rounds)]
        handlers = [
            answering(Response("x"), phase=phase, next_phase=following)
            for phase, following in zip(phases, [*phases[1:], "completed"], strict=True)
        ]
        repository = CountingThreads()
        await run_pipeline(pipelines.pipeline(sub_agent(*handlers)), "go", repository=repository)
        counts.append(repository.writes)
    first, second, tenth = counts
    assert second[True] - first[True] == 2
    assert tenth[True] - second[True] == 16
    # What the user said, the placeholder, the sub-thread, its one message, and the result.
    assert first[True] == 5
    # The phases that are entered: the second one of the main thread, and those of the sub-thread.
    assert [each[False] for each in counts] == [3, 4, 12]


def sub_agent(*handlers: StateHandler, **units: Any) -> Any:
    class Agent(SubThreadAgent):
        async def _initialize_interaction_units(self) -> None:
            self.interaction_units = {
                each.phase: await InteractionUnit.create(state_handler=each, **units)
                for each in handlers
            }

    return Agent


def main_agent(*handlers: StateHandler) -> Any:
    class Agent(BaseAgent):
        async def _initialize_state_handlers(self) -> None:
            self.state_handlers = {each.phase: each for each in handlers}

    return Agent


def answering(made: Any, **config: Any) -> StateHandler:
    class Handler(StateHandler):
        async def handle(self, task: Task, thread: Thread, agent: BaseAgent) -> Any:
            found = made(task, thread, agent, self) if callable(made) else made
            return await found if hasattr(found, "__await__") else found

    return Handler(**{"phase": "initial_phase", **config})


async def _stream():
    yield "a stream"


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("text", "Handler returned str, not a Response"),
        (Response("  "), "Handler returned an empty text"),
        (Response().set_stream(_stream()), "returned a stream, which only the main thread has"),
        (Response("x").add_next_task(Task(name="x")), "returned a next task"),
        (Response("x", phase_suggestion="nowhere"), "suggests 'nowhere'"),
        (Response("x", meta={"message_update": {"message_id": "no"}}), "has a message 'no'"),
        (Response("x", meta={"message_update": {"id": "no"}}), "message_update is wrong at 'id'"),
        (Response(5), "returned a Response whose text is of type int"),  # type: ignore[arg-type]
        (Response("x", meta={"a": object()}), "meta.a is of type object"),
        (Response("x", meta={"a": [float("nan")]}), "meta.a.0 is nan"),
        (Response("x", meta={"a": {"$thread": True}}), "meta.a has the name '$thread'"),
    ],
)
async def test_what_a_unit_cannot_use_is_a_failure_that_names_the_phase(
    made: Any, told: str
) -> None:
    inner = sub_agent(answering(made))
    repository = MemoryThreads()
    response = await run_pipeline(pipelines.pipeline(inner), "hello", repository=repository)
    assert told in str(response.failure)
    thread = await stored(repository)
    sub = thread.messages[1].meta["_thread"]
    assert (sub.phase, len(sub.messages)) == ("initial_phase", 0)
    assert told.split(",", maxsplit=1)[0] in thread.error


def _puts(thread: Thread, value: Any) -> Response:
    thread.settings["mine"] = value
    return Response("x")


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda *_: Response("x").add_next_task("no task"), "a next task is of type str"),  # type: ignore[arg-type]
        (lambda *_: Response("x", phase_suggestion="nowhere"), "suggests 'nowhere'"),
        (
            lambda *_: Response("x", sub_thread_request=SubThreadRequest(meta_path="meta.a.b")),
            "give meta and one name",
        ),
        (
            lambda *_: Response(
                "x", sub_thread_request=SubThreadRequest(meta_path="meta.messages")
            ),
            "give meta and one name",
        ),
        (lambda _, thread, *__: _puts(thread, object()), "settings.mine is of type object"),
        (lambda _, thread, *__: _puts(thread, {"$thread": 1}), "settings.mine has the name"),
    ],
)
async def test_what_the_main_thread_cannot_use_leaves_it_as_it_was_and_usable(
    made: Any, told: str
) -> None:
    made_of = iter([made, made])

    def now(*given: Any) -> Response:
        make = next(made_of, None)
        return Response("good", phase_suggestion="completed") if make is None else make(*given)

    agent, repository = main_agent(answering(now)), MemoryThreads()
    for retry in (False, True):
        said = None if retry else "hello"
        response = await run_pipeline(agent, said, repository=repository, retry=retry)
        assert told in str(response.failure)
        thread = await stored(repository)
        assert (texts(thread), told in thread.error) == (["hello"], True)
    response = await run_pipeline(agent, repository=repository, retry=True)
    assert (response.text, texts(await stored(repository))) == ("good", ["hello", "good"])


def _overwriting(place: str, whose: str, status: Any) -> Any:
    """Make what overwrites the phase of a thread, once, where it is asked to."""
    places = [place]

    def work(at: str, task: Task, thread: Thread) -> None:
        if at in places:
            places.clear()
            is_sub = whose == "own" and task.sub_thread_path
            own = require_sub_thread(thread, task.sub_thread_path) if is_sub else thread
            own.settings["brief_status"] = status

    return work


@pytest.mark.parametrize("status", ["done", {"phase": "second"}, {"round": 7}, None])
@pytest.mark.parametrize("whose", ["own", "main"])
@pytest.mark.parametrize("place", ["handler", "unit", "summary", "main handler"])
async def test_who_overwrites_a_phase_is_told_so_and_the_work_goes_on_from_it(
    place: str, whose: str, status: Any
) -> None:
    work = _overwriting(place, whose, status)

    def says(task: Task, thread: Thread, *_: Any) -> Response:
        work("handler", task, thread)
        return Response("said")

    class Unit(InteractionUnit):
        async def generate_user_message(self, *given: Any) -> str:
            work("unit", given[1], given[2])
            return "Go on."

    class Agent(SubThreadAgent):
        async def _initialize_interaction_units(self) -> None:
            first = answering(says, phase="first", next_phase="second")
            handlers = [first, answering(Response("the end"), phase="second")]
            self.interaction_units = {
                each.phase: await Unit.create(state_handler=each) for each in handlers
            }

        async def _summarize_results(self, results: Any, task: Task, thread: Thread) -> Any:
            work("summary", task, thread)
            return await super()._summarize_results(results, task, thread)

    class Execution(SubThreadExecutionHandler):
        sub_thread_agent = Agent

        async def handle(self, task: Task, thread: Thread, agent: BaseAgent) -> Response:
            work("main handler", task, thread)
            return await super().handle(task, thread, agent)

    agent, repository = main_agent(SubThreadPreparationHandler(), Execution()), MemoryThreads()
    response = await run_pipeline(agent, "hello", repository=repository)
    assert "has changed brief_status" in str(response.failure)
    assert "Suggest the phase that follows" in str(response.failure)
    thread = await stored(repository)
    assert (thread.phase, "brief_status" in thread.error) == ("execute_subthread", True)
    response = await run_pipeline(agent, repository=repository)
    thread = await stored(repository)
    assert (response.failure, texts(thread)) == (
        None,
        ["hello", "the end", ["said", "Go on.", "the end"]],
    )


@pytest.mark.parametrize(
    ("suggestion", "told"),
    [
        ("second", "its _phase_update_suggestion is of type str"),
        ({"next": "second"}, "its _phase_update_suggestion has no phase"),
        ({"phase": "nowhere"}, "Handler suggests 'nowhere', which it does not name"),
    ],
)
@pytest.mark.parametrize("where", ["below", "main"])
async def test_a_suggestion_by_hand_that_cannot_be_used_is_refused_and_dropped(
    where: str, suggestion: Any, told: str
) -> None:
    is_below = where == "below"
    given = iter([suggestion])

    def suggests(task: Task, thread: Thread, *_: Any) -> Response:
        own = require_sub_thread(thread, task.sub_thread_path) if is_below else thread
        own.settings["_phase_update_suggestion"] = next(given, {"phase": "second"})
        return Response("first")

    first = answering(suggests, phase="first", next_phase="second")
    second = answering(Response("second", phase_suggestion="completed"), phase="second")
    agent = pipelines.pipeline(sub_agent(first, second)) if is_below else main_agent(first, second)
    repository = MemoryThreads()
    response = await run_pipeline(agent, "hello", repository=repository)
    assert told in str(response.failure)
    response = await run_pipeline(agent, repository=repository, retry=True)
    assert (response.failure, response.text) == (None, "second" if is_below else "first")


async def test_a_stored_thread_without_a_phase_is_refused_and_left() -> None:
    repository = MemoryThreads()
    await repository.save_thread(Thread("main", settings={"brief_status": "done"}))
    told = "its brief_status is of type str, not a mapping with a phase"
    with pytest.raises(ThreadError, match=told):
        await run_pipeline(FourDeep, "hello", repository=repository)
    assert (await stored(repository)).revision == 1


async def test_a_unit_has_a_time_limit_and_a_sub_thread_a_bound_on_its_rounds() -> None:
    async def hanging(*_: Any) -> Response:
        await asyncio.Event().wait()
        raise AssertionError

    inner = sub_agent(answering(hanging), timeout=0.01)
    response = await run_pipeline(pipelines.pipeline(inner), "hello")
    assert "took more than 0.01 s" in str(response.failure)

    async def again(*_: Any) -> Response:
        return Response("more", phase_suggestion="initial_phase")

    inner = sub_agent(answering(again, other_phases=("initial_phase",)))
    inner.max_units = 3
    repository = MemoryThreads()
    response = await run_pipeline(pipelines.pipeline(inner), "hello", repository=repository)
    assert "had all of its 3 rounds" in str(response.failure)
    thread = await stored(repository)
    assert texts(thread.messages[1].meta["_thread"]) == ["more", "Continue."] * 3


async def test_the_suggestion_of_a_handler_wins_and_one_that_was_cut_off_is_dropped() -> None:
    class Judge(StateHandler):
        async def handle(self, task: Task, thread: Thread, agent: BaseAgent) -> Response:
            own = require_sub_thread(thread, task.sub_thread_path)
            is_second = any(each.text == "judged" for each in own.messages)
            await self._suggest_phase_update(task, thread, None if is_second else "draft")
            return Response("judged")

    inner = sub_agent(
        answering(Response("draft"), phase="draft", next_phase="judge"),
        Judge(phase="judge", other_phases=("draft",)),
    )
    agent = pipelines.pipeline(inner)
    once = ["draft", "Continue.", "judged"]
    for writes in range(30):
        repository = MemoryThreads()
        try:
            await run_pipeline(agent, "hello", repository=KillingThreads(repository, writes))
        except Killed:
            await run_pipeline(agent, repository=repository)
        else:
            break
        sub = (await stored(repository)).messages[1].meta["_thread"]
        assert texts(sub) == [*once, "Continue.", *once], writes
    assert writes > 10


@pytest.mark.parametrize("other", ["draft", "nowhere"])
async def test_two_suggestions_of_one_handler_are_refused(other: str) -> None:
    class Judge(StateHandler):
        async def handle(self, task: Task, thread: Thread, agent: BaseAgent) -> Response:
            await self._suggest_phase_update(task, thread)
            return Response("judged", phase_suggestion=other)

    inner = sub_agent(
        answering(Response("draft"), phase="draft", next_phase="judge"),
        Judge(phase="judge", other_phases=("draft",)),
    )
    response = await run_pipeline(pipelines.pipeline(inner), "hello", repository=MemoryThreads())
    told = "several phases: completed, draft" if other == "draft" else "suggests 'nowhere'"
    assert told in str(response.failure)


@pytest.mark.parametrize("nonsense", ["x", 5, [{"name": 1}], {"name": "x"}])
async def test_next_tasks_that_are_none_are_an_error_with_a_fix(nonsense: Any) -> None:
    async def wrong(task: Task, thread: Thread, *_: Any) -> Response:
        thread.settings["_next_tasks"] = nonsense
        return Response("done")

    class Wrong(BaseAgent):
        async def _initialize_state_handlers(self) -> None:
            self.state_handlers = {"only_phase": answering(wrong, phase="only_phase")}

    response = await run_pipeline(Wrong, "hello", repository=MemoryThreads())
    assert "add_next_task" in str(response.failure)


@pytest.mark.parametrize("way", ["message_update", "skip_bot_message_creation"])
async def test_a_message_that_a_later_round_changes_is_made_once_by_that_round(way: str) -> None:
    made = Counter[str]()

    async def revised(task: Task, thread: Thread, agent: BaseAgent, _: Any) -> Response:
        made["revision"] += 1
        first = require_sub_thread(thread, task.sub_thread_path).messages[0]
        is_update = way == "message_update"
        meta = {way: {"message_id": first.id} if is_update else True}
        if not is_update:
            await task.host_utils.thread_repository.update_message(
                thread, first.id, {"text": "revised"}
            )
        return Response("revised", meta=meta)

    inner = sub_agent(
        answering(Response("draft"), phase="draft", next_phase="revision"),
        answering(revised, phase="revision", next_phase="last_words"),
        answering(Response("the end"), phase="last_words"),
    )
    agent, writes = pipelines.pipeline(inner), 0
    for writes in range(30):
        made.clear()
        repository = MemoryThreads()
        try:
            await run_pipeline(agent, "hello", repository=KillingThreads(repository, writes))
        except Killed:
            was_stored = "revised" in repr(texts(await stored(repository)))
            await run_pipeline(agent, repository=repository)
        else:
            break
        sub = (await stored(repository)).messages[1].meta["_thread"]
        assert texts(sub) == ["revised", "Continue.", "Continue.", "the end"], writes
        assert made["revision"] == 1 or not was_stored or way != "message_update", writes
    assert writes > 10


async def test_without_a_message_to_keep_one_is_made_and_that_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    texts_left = iter(["", "said"])

    def says(*_: Any) -> Response:
        return Response(next(texts_left), meta={"skip_bot_message_creation": True})

    repository, agent = MemoryThreads(), pipelines.pipeline(sub_agent(answering(says)))
    response = await run_pipeline(agent, "hello", repository=repository)
    assert "Handler returned an empty text, and there is no message to keep" in str(
        response.failure
    )
    response = await run_pipeline(agent, repository=repository)
    assert (response.failure, response.text) == (None, "said")
    assert texts(await stored(repository)) == ["hello", "said", ["said"]]
    assert "there is no bot message to keep, so one is created" in caplog.text


async def test_the_response_pipeline_has_one_order() -> None:
    request = SubThreadRequest(meta_path="meta.outline", settings={"for": "outline"})
    first = answering(
        lambda *_: Response(
            "one", meta={"note": 1}, phase_suggestion="second", sub_thread_request=request
        ).add_next_task(Task(name="go", meta={"original_query": "q"})),
        next_phase="second",
    )

    async def second(task: Task, thread: Thread, agent: BaseAgent, _: Any) -> Response:
        update = MessageUpdate(message_id=str(task.meta["placeholder_id"]), meta={"done": True})
        return Response("two", meta={"message_update": update})

    agent = main_agent(first, answering(second, phase="second"))
    repository = MemoryThreads()
    response = await run_pipeline(agent, "hello", repository=repository)
    thread = await stored(repository)
    assert response.text == "two"
    assert [each.text for each in thread.messages] == ["hello", "two"]
    meta = thread.messages[1].meta
    assert (meta["note"], meta["done"], meta["phase"]) == (1, True, "second")
    assert meta["outline"].settings == {
        "brief_status": {"phase": "initial_phase"},
        "for": "outline",
    }


async def test_models_are_asked_through_the_adapter_with_a_line_that_says_who_asks() -> None:
    inner = sub_agent(
        ModelHandler(phase="draft", next_phase="critique"), ModelHandler(phase="critique")
    )
    agent = pipelines.pipeline(inner)
    with ScriptedModel({"unit draft": ["A draft."], "unit critique": ["Good."]}) as model:
        response = await run_pipeline(agent, "hello", model=model)
    assert response.text == "Good."
    told = model.calls[1].messages
    assert told[0].text == (
        'Do critique.\n\n<call node="unit" phase="critique" path="messages.1.meta._thread"/>'
    )
    with ScriptedModel({"unit draft": [""]}) as model:
        response = await run_pipeline(agent, "hello", model=model)
    assert isinstance(response.failure, PhaseError)
    assert "the model said nothing" in str(response.failure)
    assert "the pipeline has none" in str((await run_pipeline(agent, "hello")).failure)


async def test_the_main_thread_can_stream_and_chat_pairs_are_answered() -> None:
    async def streamed(task: Task, thread: Thread, agent: BaseAgent, _: Any) -> Response:
        pieces = await agent.ai_adapter.chat(thread.messages, stream=True)
        return Response().set_stream(pieces)

    agent = main_agent(answering(streamed))
    with ScriptedModel({"unit": ["In many pieces."]}) as model:
        response = await run_pipeline(agent, "hello", model=model)
    assert response.text == "In many pieces."
    made = await agent.create()
    pair = await made.execute_task(Task(name="chat_pair", meta={"bot": "Hi"}), Thread("t"))
    assert (pair.text, await made.load_operations()) == ("Hi", [])


async def test_a_thread_of_another_version_or_phase_is_refused_or_migrated() -> None:
    repository = MemoryThreads()
    agent = main_agent(answering(lambda task, *_: Response(task.message)))
    await run_pipeline(agent, "hello", repository=repository)
    agent.version = 2
    with pytest.raises(
        ThreadError, match="it is of version 1 of the pipeline, and Agent is of version 2"
    ):
        await run_pipeline(agent, "more", repository=repository)
    assert (await stored(repository)).revision == 2

    class Migrating(agent):
        async def migrate(self, thread: Thread, version: int) -> bool:
            return version == 1

    response = await run_pipeline(Migrating, "more", repository=repository)
    assert response.text == "more"
    thread = await stored(repository)
    thread.set_status(phase="unheard_of")
    await repository.save_thread(thread)
    with pytest.raises(PhaseError, match="In the phase 'unheard_of': Migrating has no handler"):
        await run_pipeline(Migrating, "more", repository=repository)
    with pytest.raises(ThreadError, match="there is nothing to do"):
        await run_pipeline(agent, repository=MemoryThreads())


@pytest.mark.parametrize(
    ("agent", "told"),
    [
        (main_agent(), "the agent has no phases"),
        (
            main_agent(answering("", next_phase="writing")),
            "no handler has this phase .got 'writing'.. Add one, or name one of: initial_phase",
        ),
        (
            main_agent(
                answering("", phase="a", next_phase="b"), answering("", phase="b", next_phase="a")
            ),
            "these phases lead to each other and never to 'completed' .got 'a -> b -> a'",
        ),
        (
            main_agent(answering("", phase="completed")),
            "the phase 'completed' cannot have a handler",
        ),
        (sub_agent(answering(""), next_phase="b"), "its handler Handler says 'completed' .got 'b'"),
        (sub_agent(answering(""), phase="b"), "its handler Handler says 'initial_phase'"),
    ],
)
async def test_phases_that_cannot_be_walked_are_refused_when_the_agent_is_built(
    agent: Any, told: str
) -> None:
    with pytest.raises(ConfigurationError, match=told):
        await agent.create()


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("text", "returned str, not a Response"),
        (Response(""), "returned an empty text"),
        (Response("x").set_stream(_stream()), "returned a stream, which only the main thread has"),
    ],
)
async def test_what_a_sub_thread_comes_to_must_be_a_whole_text(made: Any, told: str) -> None:
    summaries = iter([made])

    class Agent(sub_agent(answering(Response("a unit's text")))):
        async def _summarize_results(self, results: Any, task: Task, thread: Thread) -> Any:
            return next(summaries, Response("a summary"))

    agent, repository = pipelines.pipeline(Agent), MemoryThreads()
    response = await run_pipeline(agent, "hello", repository=repository)
    assert told in str(response.failure)
    response = await run_pipeline(agent, repository=repository)
    thread = await stored(repository)
    assert (response.text, thread.messages[1].text) == ("a summary", "a summary")
