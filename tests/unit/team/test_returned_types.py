"""A function whose annotation cannot be of its output type is a mistake of the team."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
from langchain_core.messages import AIMessage
from pydantic import BaseModel, ConfigDict, RootModel, model_validator
from typing_extensions import TypedDict

from replan import Host, Specialist, SpecialistResult, Team, TeamError
from replan.team.fields.returned_types import cannot_be

T = TypeVar("T")


class Offer(BaseModel):
    supplier: str
    total: float = 0


class Better(Offer):
    pass


class Other(BaseModel):
    supplier: str


class Offers(RootModel[list[Offer]]):
    pass


class Anything(BaseModel):
    supplier: str

    @model_validator(mode="before")
    @classmethod
    def any_form(cls, given: Any) -> Any:
        return {"supplier": str(given)}


class FromObject(Offer):
    model_config = ConfigDict(from_attributes=True)


@dataclass
class Town:
    name: str


class Row(TypedDict):
    supplier: str


@pytest.mark.parametrize(
    ("returned", "wanted"),
    [
        (dict[str, int], Offer),
        (Other, Offer),
        (Town, Offer),
        (Offer, Town),
        (int, Offer),
        (None, Offer),
        (list[Offer], Offer),
        (Offer, list[Offer]),
        (list[Other], list[Offer]),
        (list[int], list[str]),
        (Offer, str),
        (int, str),
        (Offer, int),
        (dict[str, int], list[int]),
        (Other | None, Offer),
        (Other, Offer | Town),
    ],
)
def test_types_that_have_nothing_in_common(returned, wanted):
    assert cannot_be(returned, wanted)


@pytest.mark.parametrize(
    ("returned", "wanted"),
    [
        (Offer, Offer),
        (Better, Offer),
        (Offer, Better),
        (str, Offer),
        (AIMessage, Offer),
        (SpecialistResult, Offer),
        (Offer | str | SpecialistResult, Offer),
        (Other | Offer, Offer),
        (Any, Offer),
        (object, Offer),
        (T, Offer),
        (dict, Offer),
        (dict[str, Any], Offer),
        (dict[str, str], Offer),
        (dict[str, str | int], Offer),
        (Row, Offer),
        (Offer, Offer | Other),
        (list[Offer], Offers),
        (list[Offer], tuple[Offer, ...]),
        (list[dict[str, Any]], list[Offer]),
        (int, float),
        (float, int),
        (int, Anything),
        (Town, FromObject),
        (list, list[Offer]),
        (dict[str, str], Town),
    ],
)
def test_types_that_may_fit(returned, wanted):
    assert not cannot_be(returned, wanted)


def wrong(_: object) -> dict[str, int]:
    return {}


async def wrong_later(_: object) -> Other:
    return Other(supplier="x")


def wrong_awaitable(_: object) -> Awaitable[Other]:
    return wrong_later(_)


class WrongObject:
    def __call__(self, _: object) -> list[Offer]:
        return []


@pytest.mark.parametrize("work", [wrong, wrong_later, wrong_awaitable, WrongObject()])
def test_such_a_function_is_refused_when_the_team_is_made(work):
    with pytest.raises(TeamError) as refused:
        Team(Host("offline"), [Specialist("a", "A.", run=work, output_type=Offer)])
    (mistake,) = refused.value.mistakes
    assert (mistake.field, mistake.code) == ("specialists[0].run", "wrong_return")
    assert "its output_type is Offer" in mistake.reason
    assert "SpecialistResult" in mistake.fix


def test_a_function_that_says_nothing_or_says_it_in_unknown_words_is_taken():
    def unknown(_: object) -> "NoSuchName":  # noqa: F821 - on purpose
        return Offer(supplier="x")

    for work in (lambda _: None, unknown, str):
        assert Team(Host("offline"), [Specialist("a", "A.", run=work, output_type=Offer)])
