import json
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel, Field, field_validator

from replan.prompts.replies.shape import LONGEST, MisshapenError, Shape, as_text


class Price(BaseModel):
    item: str
    cents: int = Field(ge=0)


@dataclass
class Day:
    when: date


PRICE = Shape(Price)


@pytest.mark.parametrize(
    ("value", "why"),
    [({"item": "x" * LONGEST, "cents": 1}, "are kept"), (Price.model_json_schema(), "not a valid")],
)
def test_neither_a_value_that_is_too_long_nor_the_schema_is_a_value(value, why):
    with pytest.raises(MisshapenError, match=why):
        PRICE.read(json.dumps(value))


def test_any_type_with_a_schema_is_a_shape():
    assert Shape(dict[str, int]).read('{"a": 1}') == {"a": 1}


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
