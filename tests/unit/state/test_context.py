"""A session as a value: what comes back, what is refused, and how updates change it."""

import copy
import json
import random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from replan.base.secrets.sources import learn_values
from replan.errors import ContextError
from replan.state.session.context import FORMAT, AgentContext, Message, ToolExecution

NOON = "2026-03-01T12:00:00+00:00"

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
mappings = st.dictionaries(words, values, max_size=4)
blocks = st.lists(mappings.map(lambda each: {**each, "type": "text"}), min_size=1, max_size=2).map(
    tuple
)
messages = st.builds(
    Message,
    role=st.sampled_from(["user", "assistant", "system"]),
    content=words | blocks,
    timestamp=st.just(NOON),
    metadata=mappings,
)
calls = st.builds(
    ToolExecution,
    id=words,
    tool_name=words,
    arguments=mappings,
    result=values,
    success=st.booleans(),
    error=st.none() | words,
    started_at=st.none() | st.just(NOON),
    duration=st.none() | st.floats(0, 100),
)
contexts = st.builds(
    AgentContext,
    session_id=st.just("s"),
    dialogue_history=st.lists(messages, max_size=4).map(tuple),
    current_stage=words,
    project_state=mappings,
    tool_execution_history=st.lists(calls, max_size=2).map(tuple),
    session_metadata=mappings,
)


def written(context: AgentContext) -> str:
    return json.dumps(context.to_dict(), sort_keys=True)


def said(text: str, role: Any = "user") -> Message:
    return Message(role=role, content=text, timestamp=NOON)


def whole() -> AgentContext:
    picture = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}
    return AgentContext(
        session_id="s-1",
        dialogue_history=(
            said("Plan a trip."),
            Message(role="user", content=(picture,), timestamp=NOON, metadata={"n": 1}),
        ),
        current_stage="question",
        project_state={"run": {"state": [1, None, {"a": 0.5}]}, "research_findings": "much"},
        tool_execution_history=(
            ToolExecution(
                id="c1", tool_name="find", arguments={"q": "x"}, success=True, result=[1]
            ),
        ),
        session_metadata={"last_updated": NOON},
    )


@given(contexts)
def test_a_context_comes_back_from_json_without_loss(context):
    again = AgentContext.from_dict(json.loads(json.dumps(context.to_dict())))
    assert again == context
    assert written(again) == written(context)


@given(contexts, contexts)
def test_updates_make_the_other_context_of_the_first_one(before, after):
    was = written(before)
    updates = json.loads(json.dumps(before.updates_to(after)))
    assert written(before.apply(updates)) == written(after)
    assert written(before) == was


@pytest.mark.parametrize(
    ("updates", "fields"),
    [
        ({"session_id": {"set": "other"}}, ["session_id"]),
        ({"last_updated": NOON}, ["last_updated"]),
        ({"dialogue_history": []}, ["dialogue_history"]),
        ({"dialogue_history": {"append": [], "set": []}}, ["dialogue_history"]),
        ({"dialogue_history": {"append": [1]}}, ["dialogue_history.append[0]"]),
        ({"dialogue_history": {"append": None}}, ["dialogue_history.append"]),
        ({"current_stage": "done"}, ["current_stage"]),
        ({"current_stage": {"set": 1}}, ["current_stage.set"]),
        (
            {"project_state": {"run": 1}, "session_metadata": 1},
            ["project_state.run", "session_metadata"],
        ),
        ({"project_state": {"a": {"set": float("nan")}}}, ["project_state.a.set"]),
        ({1: None, "project_state": {2: None}}, ["['1']", "project_state['2']"]),
        ([], ["context"]),
    ],
)
def test_updates_that_are_none_are_refused_by_field(updates, fields):
    context = whole()
    with pytest.raises(ContextError) as refused:
        context.apply(updates)
    assert [each.field for each in refused.value.mistakes] == fields
    assert context == whole()


def test_updates_to_another_session_are_refused():
    with pytest.raises(ContextError, match="session_id"):
        whole().updates_to(AgentContext(session_id="other"))


def test_every_bad_field_is_named_at_once():
    data = whole().to_dict()
    data["session_id"] = ""
    data["dialogue_history"][0] |= {"role": "robot", "content": {"a": 1}, "timestamp": "noon"}
    data["dialogue_history"].append("words")
    data["project_state"]["a b"] = {1: 2, "x": float("inf")}
    data["tool_execution_history"][0] |= {"success": "yes", "duration": -1.0}
    data["session_metadata"] = {"half": "\ud800", "big": 2**70, "thing": object()}
    with pytest.raises(ContextError) as refused:
        AgentContext.from_dict(data)
    assert {each.field for each in refused.value.mistakes} == {
        "session_id",
        "dialogue_history[0].role",
        "dialogue_history[0].content",
        "dialogue_history[0].timestamp",
        "dialogue_history[2]",
        "project_state['a b']['1']",
        "project_state['a b'].x",
        "tool_execution_history[0].success",
        "tool_execution_history[0].duration",
        "session_metadata.half",
        "session_metadata.big",
        "session_metadata.thing",
    }
    assert all(each.field in str(refused.value) for each in refused.value.mistakes)


def test_a_newer_format_is_refused_and_nothing_of_it_is_read():
    data = {"format": FORMAT + 1, "session_id": 3}
    before = copy.deepcopy(data)
    with pytest.raises(ContextError, match="newer") as refused:
        AgentContext.from_dict(data)
    assert [each.field for each in refused.value.mistakes] == ["format"]
    assert data == before


@pytest.mark.parametrize("number", [0, "1", True, None, 1.0])
def test_what_is_no_number_of_a_format_is_refused(number):
    with pytest.raises(ContextError, match="format"):
        AgentContext.from_dict({"format": number, "session_id": "s"})


def test_size_is_bounded():
    data = {"session_id": "s", "project_state": {"text": "\N{EURO SIGN}" * 400}}
    assert AgentContext.from_dict(data, most_bytes=1_500)
    with pytest.raises(ContextError, match=r"larger than 1,000 bytes") as refused:
        AgentContext.from_dict(data, most_bytes=1_000)
    assert [each.field for each in refused.value.mistakes] == ["context"]


@pytest.mark.parametrize("levels", [129, 5_000])
def test_depth_is_bounded(levels):
    deep: Any = []
    for _ in range(levels):
        deep = [deep]
    with pytest.raises(ContextError, match="deeper"):
        AgentContext.from_dict({"session_id": "s", "project_state": {"a": deep}})


def test_a_small_value_that_unfolds_into_a_huge_one_is_refused():
    laughs: Any = ["ha"]
    for _ in range(40):
        laughs = [laughs, laughs]
    with pytest.raises(ContextError, match="larger"):
        AgentContext.from_dict(
            {"session_id": "s", "project_state": {"a": laughs}}, most_bytes=10_000
        )


def test_secrets_do_not_stand_in_what_is_told():
    learn_values(["s3cret-of-a-session"])
    with pytest.raises(ContextError) as refused:
        AgentContext.from_dict({"session_id": ["s3cret-of-a-session"]})
    assert "s3cret" not in str(refused.value)


ODD = [
    None,
    True,
    -1,
    2**70,
    1e400,
    "",
    "x" * 50,
    "\ud800",
    "\0",
    [],
    {},
    [[]],
    {"type": 1},
    {1: 2},
]


def mutated(data: Any, draw: random.Random) -> Any:
    """Change one place of a value: another one in its place, none, twice, or under another name."""
    if isinstance(data, dict) and data and draw.random() < 0.8:
        name = draw.choice(list(data))
        change = draw.randrange(4)
        if change == 0:
            return {key: each for key, each in data.items() if key != name}
        if change == 1:
            return {**data, draw.choice(["x", "format", "role", "", "\0"]): data[name]}
        return {**data, name: mutated(data[name], draw)}
    if isinstance(data, list) and data and draw.random() < 0.8:
        place = draw.randrange(len(data))
        if draw.random() < 0.2:
            return data[:place] + data[place:] * 2
        return [mutated(each, draw) if i == place else each for i, each in enumerate(data)]
    return draw.choice(ODD)


def test_a_damaged_context_is_read_whole_or_refused():
    draw, read, refused = random.Random(14), 0, list[ContextError]()  # noqa: S311 - no secret
    for _ in range(2_000):
        data = whole().to_dict()
        for _ in range(draw.randrange(1, 4)):
            data = mutated(data, draw)
        try:
            context = AgentContext.from_dict(data)
        except ContextError as error:
            refused.append(error)
        else:
            read += 1
            assert AgentContext.from_dict(json.loads(json.dumps(context.to_dict()))) == context
    assert all(error.mistakes for error in refused)
    assert min(read, len(refused)) > 200
