"""A schema is measured without writing it out, by the rules by which LangChain writes it out."""

import json
import sys

import pytest
from hypothesis import given, settings, strategies as st
from langchain_core.utils.json_schema import dereference_refs

from replan.base.texts.schema_size import (
    LONGEST_SCHEMA,
    LONGEST_SCHEMAS,
    SchemaBoundError,
    SchemaMeter,
)
from schemas import doubling_schema


def chain(levels, key="$defs"):
    """Each definition holds the next one once."""
    defs = {str(n): {"items": {"$ref": f"#/{key}/{n + 1}"}} for n in range(levels)}
    return {"properties": {"p": {"$ref": f"#/{key}/0"}}, key: {**defs, str(levels): {}}}


def nested(levels, inner="anyOf"):
    schema = {"type": "string"}
    for _ in range(levels):
        schema = {inner: [schema]}
    return {"type": "object", "properties": {"a": schema}}


TREE = {
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/Node"}},
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
        }
    },
}


def entangled(count):
    """Each definition refers to all of them: the orders in which to visit them are count!."""
    every = {f"p{n}": {"$ref": f"#/$defs/{n}"} for n in range(count)}
    return {"properties": every, "$defs": {str(n): {"properties": every} for n in range(count)}}


def shared(levels):
    """A value of Python, without any reference, that holds the same one twice."""
    part = {"type": "string"}
    for _ in range(levels):
        part = {"x": part, "y": part}
    return {"type": "object", "properties": {"p": part}}


def itself():
    schema = {"type": "object", "properties": {}}
    schema["properties"]["again"] = schema
    return schema


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (doubling_schema(30), "more than 50,000 characters"),
        (doubling_schema(30, key="definitions"), "more than 200,000 characters"),
        (doubling_schema(30, inner="anyOf"), "more than 50,000 characters"),
        (doubling_schema(30, fan=3, title="as well"), "more than 50,000 characters"),
        (entangled(12), "more than 50,000 characters"),
        (shared(40), "more than 50,000 characters"),
        (itself(), "deeper than 100 levels"),
        (chain(60), "deeper than 100 levels"),
        (nested(60), "deeper than 100 levels"),
        ({"properties": {"a": {"enum": ["x" * 60_000]}}}, "more than 50,000 characters"),
        ({"properties": {"a": {"enum": [0] * 60_000}}}, "more than 50,000 characters"),
        ({"$defs": {"unused": "x" * 300_000}}, "more than 200,000 characters"),
        ({"properties": {"a": {"$ref": "#/$defs/none"}}}, "'#/\\$defs/none' leads nowhere"),
        ({"properties": {"a": {"$ref": "https://x.example/s.json"}}}, "leads nowhere"),
        ({"properties": {"a": {"$ref": "#/" + "9" * 5_000}}}, "leads nowhere"),
        ({"properties": {"$ref": {"type": "string"}}}, "a reference in it is not text"),
    ],
)
def test_a_schema_beyond_a_bound_is_refused_after_as_much_work_as_the_bound_allows(schema, problem):
    entered = 0

    def count(frame, event, _):
        nonlocal entered
        entered += event == "call"

    sys.setprofile(count)
    try:
        with pytest.raises(SchemaBoundError, match=problem):
            SchemaMeter().length(schema)
    finally:
        sys.setprofile(None)
    assert entered < 500_000


def test_definitions_that_lead_back_to_themselves_are_no_reason_to_refuse_a_schema():
    assert SchemaMeter().length(TREE) < 1_000
    assert SchemaMeter().length({"properties": {"a": {"$ref": "#"}}}) < 1_000


def test_all_schemas_of_a_meter_are_bounded_together():
    meter, long = SchemaMeter(), {"properties": {"a": {"enum": ["x" * 49_000]}}}
    for _ in range(LONGEST_SCHEMAS // LONGEST_SCHEMA):
        meter.length(long)
    with pytest.raises(SchemaBoundError, match="with those before it"):
        meter.length(long)


_NAMES = st.sampled_from("abc")
_REFS = st.builds(lambda name: {"$ref": f"#/$defs/{name}"}, _NAMES)
_PARTS = st.recursive(
    st.one_of(_REFS, st.just({"type": "string"})),
    lambda part: st.one_of(
        st.dictionaries(_NAMES, part, max_size=3),
        st.lists(part, max_size=3),
        st.builds(lambda ref, more: {**ref, **more}, _REFS, st.dictionaries(_NAMES, part)),
    ),
    max_leaves=8,
)


@settings(max_examples=200)
@given(part=_PARTS, defs=st.fixed_dictionaries(dict.fromkeys("abc", _PARTS)))
def test_what_is_counted_is_at_least_what_langchain_writes(part, defs):
    schema = {"properties": {"p": part}, "$defs": defs}
    try:
        length = SchemaMeter().length(schema)
    except SchemaBoundError:
        return
    written = dereference_refs(schema)
    written.pop("$defs")
    assert length >= len(json.dumps(written))
