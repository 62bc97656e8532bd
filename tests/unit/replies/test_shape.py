import json
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel, Field, field_validator

from replan.replies.shape import LONGEST, MisshapenError, Shape, as_text


class Price(BaseModel):
    item: str
    cents: int = Field(ge=0)


@dataclass
class Day:
    when: date


PRICE = Shape(Price)
PEN = {"item": "pen", "cents": 120}


@pytest.mark.parametrize(
    "text",
    [
        '{"item": "pen", "cents": 120}',
        ' \n{"item": "pen", "cents": 120}\n',
        'Here it is:\n\n```json\n{"item": "pen", "cents": 120}\n```\n\nTell me if it is wrong.',
        '```json\n{"item": "pen", "cents": 120}\n```',
        '<think>{"item": "ink"}</think>\n{"item": "pen", "cents": 120}<|im_end|>',
        '{"item": "pen", "cents": "120"}',
    ],
)
def test_a_value_is_the_whole_reply_or_in_its_only_fence(text):
    assert PRICE.read(text) == PEN


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("It costs 120.", "no JSON value"),
        ("", "no JSON value"),
        ('{"item": "pen", "cents": 12', "no JSON value"),
        ("{'item': 'pen', 'cents': 120,}", "no JSON value"),
        ('The price: {"item": "pen", "cents": 120}.', "no JSON value"),
        (
            '```\n{"item": "a", "cents": 1}\n```\n```\n{"item": "b", "cents": 2}\n```',
            "no JSON value",
        ),
        ('{"item": "pen", "cents": -1}', "cents: Input should be greater"),
        ('{"item": "pen"}', "cents: Field required"),
        ("[]", "it is not a valid Price"),
        ('{"item": "a", "cents": 1} {"item": "b", "cents": 2}', "no JSON value"),
        ('{"item": "a\\u0000", "cents": 1}', "NUL"),
        (json.dumps({"item": "x" * LONGEST, "cents": 1}), "are kept"),
    ],
)
def test_what_is_no_such_value_is_told_with_its_mistakes(text, why):
    with pytest.raises(MisshapenError, match=why):
        PRICE.read(text)


class Lenient(BaseModel):
    name: str = ""
    cents: int = 0
    tags: list[str] = []


@pytest.mark.parametrize(
    ("wanted", "given", "why"),
    [
        (Price, {"Price": PEN}, "not a valid Price"),
        (Price, [PEN], "not a valid Price"),
        (Price, json.dumps(PEN), "not a valid Price"),
        (Price, Price.model_json_schema(), "not a valid Price"),
        (Lenient, {"Lenient": {"cents": 5}}, "none of the fields of Lenient: name, cents, tags"),
        (Lenient, {"tags": None}, "tags: .* not null; write \\[\\] if it is empty"),
    ],
)
def test_a_value_that_is_wrapped_is_asked_for_without_its_wrapping(wanted, given, why):
    with pytest.raises(MisshapenError, match=why):
        Shape(wanted).read(json.dumps(given))


def test_only_defaults_are_read_of_an_empty_object():
    assert Shape(Lenient).read("{}") == {"name": "", "cents": 0, "tags": []}
    assert Shape(dict[str, int]).read('{"a": 1}') == {"a": 1}


def test_a_mistake_does_not_repeat_the_value_that_was_given():
    with pytest.raises(MisshapenError) as caught:
        PRICE.read('{"item": "pen", "cents": "sk-very-secret"}')
    assert "sk-very-secret" not in str(caught.value)


def test_what_a_program_gives_is_kept_as_json_and_comes_back_of_its_type():
    kept = Shape(Day).checked(Day(date(2026, 11, 23)))
    assert kept == {"when": "2026-11-23"}
    assert Shape(Day).value_of(kept) == Day(date(2026, 11, 23))


def test_a_rule_of_the_types_author_counts():
    class Even(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def is_even(cls, number: int) -> int:
            if number % 2:
                raise ValueError("it is odd")
            return number

    with pytest.raises(MisshapenError, match="number: Value error, it is odd"):
        Shape(Even).read('{"number": 3}')


def test_a_type_without_a_schema_is_refused():
    with pytest.raises(TypeError):
        Shape(object())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@given(value=JSON.filter(lambda value: "\\u0000" not in json.dumps(value)))
def test_whatever_is_written_for_people_is_read_back(value):
    assert Shape(Any).read(as_text(value)) == value


@given(text=st.text(alphabet='{}[]"\\:,`\n a1', max_size=200))
def test_any_text_is_read_or_refused(text):
    try:
        PRICE.read(text)
    except MisshapenError:
        pass
    else:
        assert "item" in text
