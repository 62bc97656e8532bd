"""The types of results. Pyright checks this file strictly: `.ci/typed_programs.py`.

A line that is wrong on purpose names its error; it is an error that it is none.
"""

from typing import Annotated, Any, assert_type

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from replan import (
    ExecutionContext,
    Host,
    RunResult,
    Specialist,
    Team,
    open_runtime,
    run,
    run_sync,
)
from replan.runs.run import Run
from replan.testing import ScriptedModel, always


class Offer(BaseModel):
    supplier: str
    total: float


class Table(TypedDict):
    rows: int


OFFER = '{"supplier": "Lumen", "total": 3}'
Named = Annotated[Offer, Field(description="An offer.")]


def team() -> Team:
    model = ScriptedModel({"think": always(f"---\ncomplexity: simple\n---\n{OFFER}")})
    return Team(Host(model), [Specialist("buyer", "Buys.", run=price)])


def price(_: ExecutionContext) -> str:
    return OFFER


def total(result: RunResult[Offer]) -> float:
    return 0.0 if result.output is None else result.output.total


def any_total(result: RunResult) -> Any:
    return result.output


def test_the_type_of_an_answer_is_that_of_its_output():
    result = run_sync(team(), "Choose.", output_type=Offer)
    assert_type(result, RunResult[Offer])
    assert_type(result.output, Offer | None)
    assert total(result) == 3
    assert any_total(result) == Offer(supplier="Lumen", total=3)
    assert result.results.of(1) == ()


async def test_so_it_is_where_one_awaits():
    result = await run(team(), "Choose.", output_type=Offer)
    assert_type(result.output, Offer | None)
    assert result.output == Offer(supplier="Lumen", total=3)


async def test_so_it_is_in_a_runtime():
    async with open_runtime(team(), output_type=Offer) as runtime:
        result = await runtime.run("Choose.")
        assert_type(result, RunResult[Offer])
        assert total(result) == 3
        begun = await runtime.start("Choose.", run_id="again")
        assert_type(begun, Run[Offer])
        assert_type((await begun).output, Offer | None)


def test_so_it_is_in_a_synchronous_runtime():
    with open_runtime(team(), output_type=Offer) as runtime:
        assert total(assert_type(runtime.run("Choose."), RunResult[Offer])) == 3
        assert total(runtime.start("Choose.").result()) == 3


def test_a_type_that_is_no_class_can_be_given_too():
    either = run_sync(team(), "x", output_type=Offer | None)
    named = run_sync(team(), "x", output_type=Named)
    assert_type(either, RunResult[Any])
    assert_type(named, RunResult[Any])
    assert either.output == named.output == Offer(supplier="Lumen", total=3)


def right_programs(result: RunResult[Offer]) -> None:
    assert_type(run_sync(team(), "x"), RunResult[Any])
    assert_type(run_sync(team(), "x", output_type=list[Offer]).output, list[Offer] | None)
    assert_type(run_sync(team(), "x", output_type=Table).output, Table | None)
    general: RunResult[BaseModel] = result
    total(run_sync(team(), "x"))
    any_total(general)


def wrong_programs(result: RunResult[Offer]) -> None:
    _ = result.output.total  # pyright: ignore[reportOptionalMemberAccess]
    _named: RunResult[Table] = result  # pyright: ignore[reportAssignmentType]
    _text: str = total(result)  # pyright: ignore[reportAssignmentType]
    _table: RunResult[Table] = run_sync(team(), "x", output_type=Offer)  # pyright: ignore[reportAssignmentType]
    total(run_sync(team(), "x", output_type=Table))  # pyright: ignore[reportArgumentType]
    if result.output is not None:
        _ = result.output.totl  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
