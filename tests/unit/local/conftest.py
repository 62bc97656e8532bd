"""What the tests of the offline model and the local team share."""

import csv
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import duckdb
import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from replan_local.host import OfflineModel
from replan.plan.document import PlanDocument
from replan.plan.model import PlanStep, TaskPlan
from replan.prompts.sections import Call, Node, call_tag, section
from replan_local import DataAnalyst, local_specialists
from replan.state.results import ExecutionContext, SpecialistResult
from replan.state.team import SpecialistCard

Ask = Callable[..., Awaitable[SpecialistResult]]
Reply = Callable[..., str]

BIRDS = [
    ("2023-05-01", "Lake", "heron", 3, 1.5),
    ("2023-05-09", "Lake", "coot", 12, 0.8),
    ("2023-06-02", "Forest", "owl", 1, 0.4),
    ("2023-06-20", "Forest", "finch", 7, 0.02),
    ("2024-06-21", "Lake", "finch", 9, 0.02),
    ("2024-07-01", "Meadow", "finch", 4, 0.03),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a CSV, a Parquet and a JSON table about birds."""
    directory = tmp_path / "tables"
    directory.mkdir()
    write_csv(directory / "sightings.csv", ("day", "site", "bird", "seen", "body_mass"), BIRDS)
    duckdb.sql(
        "FROM (VALUES ('Lake', 120.5), ('Forest', 300.0), ('Meadow', 80.0)) AS t(site, area)"
    ).write_parquet(str(directory / "sites.parquet"))
    (directory / "rings.json").write_text(
        '[{"ring_id": 1, "site": "Lake", "at": "2024-01-05T10:00:00Z"},'
        ' {"ring_id": 2, "site": "Lake", "at": "2024-02-05T10:00:00Z"},'
        ' {"ring_id": 3, "site": "Forest", "at": "2024-02-06T10:00:00Z"}]'
    )
    return directory


@pytest.fixture
def ask(folder: Path) -> Ask:
    """Give the analyst a step in the folder of birds."""

    async def run(
        text: str,
        *,
        brief: str = "",
        directory: Path = folder,
        inputs: dict[int, str] | None = None,
        **parameters: object,
    ) -> SpecialistResult:
        step = PlanStep(id=4, description=text, brief=brief)
        context = ExecutionContext(
            task_description=text,
            plan_step=step,
            parameters=parameters,  # pyright: ignore[reportArgumentType] - checked by pydantic
            inputs=inputs or {},
        )
        return await DataAnalyst(directory).run(context, {})

    return run


@pytest.fixture
def team(tmp_path: Path) -> tuple[SpecialistCard, ...]:
    """The cards of the local team."""
    return tuple(specialist.card for specialist in local_specialists(tmp_path))


@pytest.fixture
def reply(team: tuple[SpecialistCard, ...]) -> Reply:
    """Ask the offline model as a node of the host does."""

    def ask_node(
        node: Node,
        human: str,
        *,
        cards: Sequence[SpecialistCard] = team,
        specialist: str | None = None,
    ) -> str:
        lines = [
            f"- @{c.name}: {c.intended_use} Capabilities: {'; '.join(c.capabilities)}"
            for c in cards
        ]
        call = call_tag(Call(node=node, specialist=specialist))
        system = f"You host a team.\n\n{section('team', chr(10).join(lines))}\n\n{call}"
        return OfflineModel().invoke([SystemMessage(system), HumanMessage(human)]).text

    return ask_node


@pytest.fixture
def planned(reply: Reply) -> Callable[[str], TaskPlan]:
    """The plan that the offline model makes of a request; no steps if it makes none."""

    def plan(request: str) -> TaskPlan:
        head, _, body = reply("think", request).removeprefix("---\n").partition("\n---\n")
        if "complexity: simple" in head:
            return TaskPlan()
        return PlanDocument.parse(body).plan

    return plan


def write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write a CSV file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
