"""What the tests of the keyless team share."""

import csv
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage, SystemMessage

import replan_local
from replan import ExecutionContext, PlanStep
from replan.ports.run_context import Folders, using
from replan.prompts.sections import Call, call_tag, section
from replan_local import OfflineModel
from replan_local.grammar import parse
from replan_local.refusals import CannotAnswerError

BIRDS = [
    ("2023-05-01", "Lake", "heron", 3, 1.5),
    ("2023-05-09", "Lake", "coot", 12, 0.8),
    ("2023-06-02", "Forest", "owl", 1, 0.4),
    ("2023-06-20", "Forest", "finch", 7, 0.02),
    ("2024-06-21", "Lake", "finch", 9, 0.02),
    ("2024-07-01", "Meadow", "finch", 4, 0.03),
]
TEAM = ("data_analyst", "librarian", "calculator", "writer")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a CSV, a Parquet and a JSON table about birds."""
    directory = tmp_path / "tables"
    directory.mkdir()
    with (directory / "sightings.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("day", "site", "bird", "seen", "body mass"), *BIRDS])
    # Not above: DuckDB complains at the end of a process that forked others.
    import duckdb  # noqa: PLC0415

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
def ask(folder, tmp_path):
    """Give a step to whoever of the team does such commands, in the folder of birds."""

    async def run(text, *, who=None, inputs=None, key="k1", directory=folder, **parameters):
        context = ExecutionContext(
            task_description=text,
            plan_step=PlanStep(id=4, description=text),
            parameters=parameters,
            inputs=inputs or {},
            idempotency_key=key,
        )
        specialist = getattr(replan_local, who or _doer(text, parameters))
        with using(folders=Folders(directory, tmp_path / "out")):
            return await specialist.run(context, {})

    return run


def _doer(text, parameters):
    try:
        return "data_analyst" if parameters else parse(text).doer
    except CannotAnswerError:
        return "data_analyst"


@pytest.fixture
def reply():
    """Ask the offline model as a node of the host does."""

    def ask_node(node, human, *, team=TEAM, specialist=None):
        cards = section("team", "\n".join(f"- @{name}: Does it." for name in team))
        call = call_tag(Call(node=node, specialist=specialist))
        messages = [SystemMessage(f"You host a team.\n\n{cards}\n\n{call}"), HumanMessage(human)]
        return OfflineModel().invoke(messages).text

    return ask_node
