"""A checkpoint restores our values and nothing else, and says nothing about it in a log."""

import logging
import pickle
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from random import Random
from string import ascii_letters
from typing import Annotated

import ormsgpack
import pytest
from langchain_core.messages import AIMessage, AnyMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import (
    EXT_CONSTRUCTOR_KW_ARGS,
    EXT_CONSTRUCTOR_POS_ARGS,
    EXT_CONSTRUCTOR_SINGLE_ARG,
    EXT_METHOD_SINGLE_ARG,
    EXT_PYDANTIC_V1,
    EXT_PYDANTIC_V2,
    JsonPlusSerializer,
)
from langgraph.errors import InvalidUpdateError
from langgraph.graph import START, StateGraph, add_messages
from langgraph.types import Command, interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict

from replan import Host, Specialist, StorageError, Team, build_graph, open_storage, run
from replan.plan.model import StepStatus, TaskPlan
from replan.storage.databases.faults import UnreadableRecordError
from replan.storage.databases.serializer import (
    PackedSerializer,
    saver_for,
    state_types,
    strict_serializer,
    types_in,
    types_of_graph,
)
from replan.testing import ScriptedModel, always

COMPLETE = "---\nverdict: complete\n---\nThe answer."
GIVEN = {"messages": [("user", "Go.")], "plan": "- [ ] 1. One @a\n- [ ] 2. Two @a (after 1)\n"}
THREAD = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
TOUCHED: list[object] = []


def random_text(length):
    return "".join(Random(1).choices(ascii_letters, k=length))  # noqa: S311 - no secret


class Planted(BaseModel):
    """A class of somebody else, whose making has an effect."""

    where: str = ""

    def model_post_init(self, context: object) -> None:
        TOUCHED.append(self.where)


class Mine(BaseModel):
    """A class that a user's own graph has in its state."""

    name: str


class Colour(Enum):
    RED = 1


@dataclass
class Point:
    x: int
    y: int


@pytest.fixture(autouse=True)
def untouched():
    TOUCHED.clear()
    yield
    assert TOUCHED == []


def ext(code, *parts):
    return ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb(parts)))


def attacks(marker):
    command = f"touch {marker}"
    name = Planted.__module__
    return {
        "os.system": ("msgpack", ext(EXT_CONSTRUCTOR_SINGLE_ARG, "os", "system", command)),
        "posix.system": ("msgpack", ext(EXT_CONSTRUCTOR_POS_ARGS, "posix", "system", [command])),
        "popen": (
            "msgpack",
            ext(EXT_CONSTRUCTOR_KW_ARGS, "subprocess", "Popen", {"args": ["touch", str(marker)]}),
        ),
        "method": (
            "msgpack",
            ext(EXT_METHOD_SINGLE_ARG, "builtins", "object", command, "__init__"),
        ),
        "eval": ("msgpack", ext(EXT_METHOD_SINGLE_ARG, "builtins", "eval", command, "__call__")),
        "foreign model": (
            "msgpack",
            ext(EXT_PYDANTIC_V2, name, "Planted", {"where": "x"}, "model_validate_json"),
        ),
        "old foreign model": ("msgpack", ext(EXT_PYDANTIC_V1, name, "Planted", {"where": "x"})),
        "json": (
            "json",
            b'{"lc": 2, "type": "constructor", "id": ["os", "system"], "args": ["%s"]}'
            % command.encode(),
        ),
        "pickle": ("pickle", pickle.dumps(Planted)),
    }


@pytest.mark.parametrize("name", attacks("x"))
def test_no_value_of_a_checkpoint_runs_code(name, tmp_path):
    marker = tmp_path / "marker"
    try:
        restored = strict_serializer().loads_typed(attacks(marker)[name])
    except UnreadableRecordError:
        assert name == "pickle"
    else:
        assert isinstance(restored, str | dict | list | None)
    assert not marker.exists()


def test_langgraphs_own_default_would_run_it(tmp_path):
    """The attack is a real one, so that the test above can fail."""
    marker = tmp_path / "marker"
    JsonPlusSerializer().loads_typed(attacks(marker)["os.system"])
    assert marker.exists()


@pytest.mark.parametrize("lasting", ["sqlite", "encrypted postgres"], indirect=True)
async def test_a_crafted_checkpoint_runs_no_code_in_any_store(lasting, tmp_path):
    """Put into the database by somebody who can write it, then resumed by us."""
    marker = tmp_path / "marker"
    with ScriptedModel({"feedback": always(COMPLETE)}) as model:
        async with lasting() as storage:
            graph = graph_of(model, storage=storage)
            for name, crafted in attacks(marker).items():
                thread = {"configurable": {"thread_id": name}}
                await run(graph, GIVEN, config=thread)
                state = await graph.aget_state(thread)
                at = {"configurable": {**thread["configurable"], **state.config["configurable"]}}
                await plant(storage.checkpointer, at, crafted)
        async with lasting() as storage:
            graph = graph_of(model, storage=storage)
            for name in attacks(marker):
                thread = {"configurable": {"thread_id": name}}
                with suppress(StorageError, InvalidUpdateError):
                    await graph.aget_state(thread)
                with suppress(StorageError, InvalidUpdateError):
                    await run(graph, None, config=thread)
                assert not marker.exists(), name


async def plant(saver, config, crafted):
    """Write values of a task as the attacker would: past the serializer."""

    class Crafting(JsonPlusSerializer):
        def dumps_typed(self, obj):
            return crafted

    honest, saver.serde = saver.serde, Crafting()
    await saver.aput_writes(config, [("current_plan", 1), ("messages", 2)], "planted")
    checkpoint = empty_checkpoint() | {"channel_values": {"settings": {"x": 1}}}
    checkpoint["id"] = "ffffffff-ffff-6fff-bfff-ffffffffffff"
    checkpoint["channel_versions"] = {"settings": saver.get_next_version(None, None)}
    await saver.aput(config, checkpoint, {}, checkpoint["channel_versions"])
    saver.serde = honest


def graph_of(model, **options):
    team = [Specialist(name="a", intended_use="Works.", run=lambda context: "done")]
    return build_graph(Team(host=Host(model=model), specialists=team), **options)


def test_the_list_has_what_the_state_leads_to():
    names = {kind.__name__ for kind in state_types()}
    assert {"TaskPlan", "PlanStep", "StepStatus", "PlanUpdate", "SpecialistResult"} <= names
    assert {"RunSettings", "Limits", "Usage", "TokenCount", "FeedbackResult"} <= names
    assert {kind.__module__.split(".")[0] for kind in state_types()} == {"replan"}


async def test_nothing_is_said_in_a_log(opened, caplog):
    caplog.set_level(logging.WARNING)
    with ScriptedModel({"feedback": always(COMPLETE)}) as model:
        async with opened() as storage:
            graph = graph_of(model, storage=storage)
            await run(graph, GIVEN, config=THREAD)
            assert [each.values async for each in graph.aget_state_history(THREAD)]
    assert [record.getMessage() for record in caplog.records] == []


async def test_a_users_own_saver_is_given_the_strict_serializer(caplog):
    caplog.set_level(logging.WARNING)
    saver = InMemorySaver()
    with ScriptedModel({"feedback": always(COMPLETE)}) as model:
        graph = graph_of(model, checkpointer=saver)
        await run(graph, GIVEN, config=THREAD)
        state = await graph.aget_state(THREAD)
    assert isinstance(state.values["current_plan"], TaskPlan)
    assert caplog.records == []
    # The checkpoints are in the saver that the user holds, whose serializer was not touched.
    assert await saver.aget_tuple(THREAD) is not None
    assert type(saver.serde) is JsonPlusSerializer


class Asking(TypedDict, total=False):
    """The state of a user's own graph."""

    messages: Annotated[list[AnyMessage], add_messages]
    mine: list[Mine]
    colour: Colour | None
    point: Point


def asking_graph():
    """A graph that keeps values of the user's own classes while it asks."""

    def look(state):
        return {"mine": [Mine(name="x")], "colour": Colour.RED, "point": Point(1, 2)}

    def ask(state):
        word = interrupt("Which?")
        text = f"{word} {state['mine'][0].name} {state['colour'].name} {state['point'].y}"
        return {"messages": [AIMessage(text)]}

    graph = StateGraph(Asking)
    graph.add_sequence([look, ask])
    graph.add_edge(START, "look")
    return graph.compile()


@pytest.mark.parametrize("kind", ["theirs", "sqlite", "encrypted"])
async def test_the_state_of_a_specialist_that_is_a_graph_comes_back(kind, tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    key = "k" if kind == "encrypted" else None
    with ScriptedModel({"feedback": always(COMPLETE)}) as model:
        async with open_storage(tmp_path / "runs.sqlite", key=key) as storage:
            kept = {"checkpointer": InMemorySaver()} if kind == "theirs" else {"storage": storage}
            team = [Specialist(name="a", intended_use="Asks.", invokable=asking_graph())]
            config = Team(host=Host(model=model), specialists=team)
            graph = build_graph(config, **kept)
            state = (await run(graph, {"plan": "- [ ] 1. Ask @a\n"}, config=THREAD)).state
            assert state["outcome"] == "waiting"
            state = (await run(graph, Command(resume="That"), config=THREAD)).state
    assert state["current_specialist_results"]["1/a"].text == "That x RED 2"
    assert caplog.records == []


def test_what_cannot_be_found_is_left_out():
    class Local(TypedDict):
        missing: "NobodyKnows"  # noqa: F821 - that is the point
        mine: Mine

    assert types_in(Local, list[Mine]) == {Mine}
    assert types_of_graph(lambda messages: messages) == frozenset()


def test_a_serializer_that_somebody_chose_stays():
    chosen = InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=[Mine]))
    assert saver_for(chosen, [asking_graph()]) is chosen
    for none in (None, True, False):
        assert saver_for(none, [asking_graph()]) is none


async def test_langgraph_may_add_its_own_list_to_ours(opened):
    async with opened(allow=[Mine]) as storage:
        saver = storage.checkpointer.with_allowlist([(Colour.__module__, Colour.__name__)])
        # What a key encrypts was written by it before.
        serde = getattr(saver.serde, "serde", saver.serde)
        for value in (Mine(name="x"), Colour.RED, StepStatus.FAILED):
            assert serde.loads_typed(serde.dumps_typed(value)) == value


def test_long_values_are_stored_compressed():
    serializer = strict_serializer(kind=PackedSerializer)
    kind, stored = serializer.dumps_typed({"text": "the same words " * 1_000})
    assert (kind, len(stored) < 500) == ("msgpack+zlib", True)
    assert serializer.loads_typed((kind, stored)) == {"text": "the same words " * 1_000}
    assert serializer.dumps_typed({"text": "a few words"})[0] == "msgpack"


def test_a_few_bytes_cannot_take_all_memory(monkeypatch):
    monkeypatch.setattr("replan.storage.databases.serializer._MOST", 1_000)
    stored = strict_serializer(kind=PackedSerializer).dumps_typed("a" * 2_000)
    with pytest.raises(UnreadableRecordError, match="cut off, or too long"):
        strict_serializer(kind=PackedSerializer).loads_typed(stored)


async def test_encrypted_values_are_not_compressed(tmp_path):
    """Else their length would tell how often a text is in them."""
    sizes = []
    for text in ("a" * 3_000, random_text(3_000)):
        async with open_storage(tmp_path / f"{text[:5]}.sqlite", key="a long key") as storage:
            sizes.append(len(storage.checkpointer.serde.dumps_typed(text)[1]))
    assert sizes[0] == sizes[1]
