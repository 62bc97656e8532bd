"""What is accepted as a typed output is read back as the same value, or refused with its field."""

import json
import math
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Annotated, Any, Generic, Literal, NotRequired, TypeVar

import pytest
from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PrivateAttr,
    RootModel,
    SecretBytes,
    SecretStr,
    WrapSerializer,
    computed_field,
    field_serializer,
    field_validator,
    model_serializer,
)
from pydantic.alias_generators import to_camel
from typing_extensions import TypedDict

from replan.prompts.replies.shape import MisshapenError, Shape

Item = TypeVar("Item")


class Camel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel)
    town_name: str


class Trip(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel)
    all_stops: list[Camel]
    by_day: dict[str, Camel] = {}


class Alias(BaseModel):
    town: str = Field(alias="Town")


class OutputAlias(BaseModel):
    town: str = Field("nowhere", serialization_alias="Town")


class InputAlias(BaseModel):
    town: str = Field("nowhere", validation_alias="Town")


class TwoAliases(BaseModel):
    town: str = Field(validation_alias="In", serialization_alias="Out")


class Choices(BaseModel):
    town: str = Field(validation_alias=AliasChoices("Town", "City"))


class Place(BaseModel):
    town: str = Field(validation_alias=AliasPath("where", 0))


class Computed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    town: str

    @computed_field
    @property
    def loud(self) -> str:
        return self.town.upper()


class Hidden(BaseModel):
    town: str
    note: str = Field(exclude=True)


class Day(BaseModel):
    when: Annotated[datetime, PlainSerializer(lambda when: when.strftime("%d.%m.%Y"))]


class Rounded(BaseModel):
    number: Annotated[float, WrapSerializer(lambda value, then: round(then(value)))]


class Renamed(BaseModel):
    town: str

    @model_serializer
    def written(self) -> dict[str, str]:
        return {"place": self.town}


class Counted(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def one_more(cls, number: int) -> int:
        return number + 1


class Key(BaseModel):
    key: SecretStr


class Keys(BaseModel):
    keys: list[SecretBytes]


class ShownKey(Key):
    @field_serializer("key")
    def shown(self, key: SecretStr) -> str:
        return key.get_secret_value()


class Share(BaseModel):
    of: float
    rest: float | None = None


class Bytes(BaseModel):
    raw: bytes


class Base64(Bytes):
    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    age: int


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]


class Box(BaseModel, Generic[Item]):
    item: Item


class Row(RootModel[list[int]]):
    pass


class One(BaseModel):
    x: int


class Two(BaseModel):
    x: int


class Cached(BaseModel):
    x: int
    _mark: object = PrivateAttr(default_factory=object)


@dataclass(eq=False)
class Town:
    name: str
    visits: int = field(init=False, default=3)


class Stop(TypedDict):
    town: str
    day: NotRequired[date]


BACK = [
    (Camel, Camel(townName="Oslo"), {"townName": "Oslo"}),
    (list[Camel], [Camel(townName="Oslo")], [{"townName": "Oslo"}]),
    (
        Trip,
        Trip(allStops=[Camel(townName="A")], byDay={"mo": Camel(townName="B")}),
        {"allStops": [{"townName": "A"}], "byDay": {"mo": {"townName": "B"}}},
    ),
    (Alias, Alias(Town="Oslo"), {"Town": "Oslo"}),
    (OutputAlias, OutputAlias(town="Oslo"), {"town": "Oslo"}),
    (InputAlias, InputAlias(Town="Oslo"), {"Town": "Oslo"}),
    (list[InputAlias], [InputAlias(Town="Oslo")], [{"Town": "Oslo"}]),
    (TwoAliases, TwoAliases(In="Oslo"), {"In": "Oslo"}),
    (Choices, Choices(City="Oslo"), {"Town": "Oslo"}),
    (Place, Place(where=["Oslo"]), {"town": "Oslo"}),
    (Computed, Computed(town="Oslo"), {"town": "Oslo"}),
    (ShownKey, ShownKey(key="abc"), {"key": "abc"}),
    (Bytes, Bytes(raw=b"ab"), {"raw": "ab"}),
    (Base64, Base64(raw=b"\xff\x00"), {"raw": "_wA="}),
    (Pet, Dog(age=1), {"kind": "dog", "age": 1}),
    (list[Pet], [Dog(age=1), Cat(lives=9)], None),
    (Box[Camel], Box[Camel](item=Camel(townName="Oslo")), {"item": {"townName": "Oslo"}}),
    (Row, Row([1, 2]), [1, 2]),
    (One | Two, One(x=1), {"x": 1}),
    (Cached, Cached(x=1), {"x": 1}),
    (Town, Town("Oslo"), {"name": "Oslo", "visits": 3}),
    (Stop, {"town": "Oslo", "day": date(2026, 1, 2)}, {"town": "Oslo", "day": "2026-01-02"}),
    (tuple[int, str], (1, "a"), [1, "a"]),
    (set[int], {1}, [1]),
    (dict[int, Camel], {1: Camel(townName="Oslo")}, {"1": {"townName": "Oslo"}}),
    (Camel | None, Camel(townName="Oslo"), {"townName": "Oslo"}),
]


@pytest.mark.parametrize(("kind", "value", "stored"), BACK, ids=[str(each[0]) for each in BACK])
def test_what_a_program_gives_is_stored_as_the_schema_names_it_and_read_back(kind, value, stored):
    shape = Shape(kind)
    kept = json.loads(json.dumps(shape.checked(value), allow_nan=False))
    assert stored is None or kept == stored
    back = shape.value_of(kept)
    assert type(back) is type(value)
    assert (back.name, back.visits) == ("Oslo", 3) if kind is Town else repr(back) == repr(value)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Camel, '{"townName": "Oslo"}'),
        (InputAlias, '{"Town": "Oslo"}'),
        (Choices, '{"City": "Oslo"}'),
        (Place, '{"where": ["Oslo"]}'),
        (Hidden, '{"town": "Oslo", "note": "n"}'),
        (Day, '{"when": "2026-01-02T03:04:05"}'),
        (Rounded, '{"number": 1.5}'),
        (Renamed, '{"town": "Oslo"}'),
        (Counted, '{"number": 1}'),
    ],
)
def test_what_a_model_writes_is_kept_as_it_wrote_it_where_the_type_writes_something_else(
    kind, text
):
    shape = Shape(kind)
    kept = shape.read(text)
    assert kept == json.loads(text)
    assert shape.value_of(kept) == kind.model_validate_json(text)


@pytest.mark.parametrize(
    ("kind", "value", "why"),
    [
        (Hidden, Hidden(town="Oslo", note="n"), "note: Field required"),
        (Day, Day(when=datetime(2026, 1, 2)), "when: Input should be a valid datetime"),  # noqa: DTZ001
        (Rounded, Rounded(number=1.5), "number: its value changes"),
        (list[Rounded], [Rounded(number=1.5)], "0.number: its value changes"),
        (Renamed, Renamed(town="Oslo"), "town: Field required"),
        (Counted, Counted(number=1), "number: its value changes"),
        (Key, Key(key="abc"), "key: a secret is not stored"),
        (list[Key], [Key(key="abc")], "0.key: a secret is not stored"),
        (Keys, Keys(keys=[b"abc"]), "keys.0: a secret is not stored"),
        (Share, Share(of=math.nan), "of: JSON has no NaN and no infinity"),
        (Share, Share(of=1, rest=-math.inf), "rest: JSON has no NaN and no infinity"),
        (list[float], [1, math.inf], "1: JSON has no NaN"),
        (Any, {"a": [math.nan]}, "a.0: JSON has no NaN"),
        (Bytes, Bytes(raw=b"\xff"), "raw: it has no form in JSON"),
        (One | Two, Two(x=1), "Two is read back as One"),
        (One, type("More", (One,), {})(x=1), "More is read back as One"),
    ],
)
def test_a_value_that_would_not_come_back_is_refused_with_its_field(kind, value, why):
    with pytest.raises(MisshapenError, match="cannot be stored as JSON and read back") as refused:
        Shape(kind).checked(value)
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "text", "why"),
    [
        (Share, '{"of": NaN}', "of: JSON has no NaN"),
        (Share, '{"of": 1, "rest": 1e999}', "rest: JSON has no NaN"),
        (float, "Infinity", "JSON has no NaN"),
        (Key, '{"key": "abc"}', "key: a secret is not stored"),
    ],
)
def test_so_is_what_a_model_writes(kind, text, why):
    with pytest.raises(MisshapenError, match=why):
        Shape(kind).read(text)


def test_a_value_that_contains_itself_is_refused():
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(MisshapenError):
        Shape(Any).checked(loop)
