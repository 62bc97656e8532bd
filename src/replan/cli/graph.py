"""`replan graph`: draw a plan, the plan of a run, or the graph of a team."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from replan.base.errors import ConfigurationError, InputError, PlanDocumentError
from replan.cli.shared import options
from replan.cli.shared.process import as_command, location_from
from replan.cli.user_files.plan_text import is_plan_path, read_plan_text

if TYPE_CHECKING:
    from replan.cli.user_files.storage_location import StorageLocation
    from replan.plan.model import TaskPlan

_WIDE = 100


@as_command
def graph(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[PLAN.md|RUN]", help="A plan document, or a run, whose current plan is drawn."
        ),
    ] = None,
    *,
    team: options.TeamFile = None,
    drawing: Annotated[
        Literal["mermaid", "ascii"] | None,
        typer.Option(
            "--format",
            "-f",
            help="mermaid (the default of a team) or ascii (the default of a plan).",
        ),
    ] = None,
    storage: options.Storage = None,
) -> None:
    """Draw the dependencies of a plan or of a run's plan, or else the graph of a team."""
    if what is None:
        typer.echo(draw(team, os.environ, ascii_art=drawing == "ascii"))
        return
    if team is not None:
        raise InputError("A plan is drawn without a team. Leave out --team.")
    plan = _plan_of(what, location_from(storage))
    typer.echo(draw_plan(plan, as_mermaid=drawing == "mermaid"))


def draw_plan(plan: TaskPlan, *, as_mermaid: bool) -> str:
    """Draw a plan, as wide as the window."""
    from replan.views.drawn_plan import boxes, mermaid

    if as_mermaid:
        return mermaid(plan)
    return "\n".join(boxes(plan, shutil.get_terminal_size((_WIDE, 24)).columns - 1))


def _plan_of(what: str, location: StorageLocation) -> TaskPlan:
    if is_plan_path(what):
        from replan.plan.markdown.document import PlanDocument

        document = PlanDocument.recover(read_plan_text(Path(what)))
        if document.mistakes:
            raise PlanDocumentError(document.mistakes)
        return document.plan
    from replan.cli.user_files.named import refusing_damaged
    from replan.cli.user_files.whole import load_run

    if what.endswith((".yaml", ".yml")):
        raise InputError(f"'{what}' is neither a plan nor a run. Draw a team with --team {what}.")
    run = asyncio.run(load_run(what, location))
    if run.plan is None:
        raise InputError(f"The run {run.run_id[:8]} has no plan.")
    with refusing_damaged(what):
        stands = {step.step.id: step.status for step in run.steps}
    steps = (step.replace(status=stands[step.id]) for step in run.plan.steps)
    return run.plan.replace(steps=tuple(steps))


def draw(team: Path | None, environment: Mapping[str, str], *, ascii_art: bool) -> str:
    """Draw the graph of a team file, or of the default team."""
    if ascii_art and find_spec("grandalf") is None:
        raise ConfigurationError(
            "format",
            "ascii",
            "drawing with characters needs grandalf, which is not installed",
            'Install it with: pip install "replan[drawing]"; or draw with --format mermaid.',
        )
    from langgraph.store.memory import InMemoryStore

    from replan.assembly.graphs import build_graph
    from replan.models.providers.missing_models import StandIns
    from replan.team.file_team import DEFAULT_TEAM
    from replan.team.team_file import read_team_file

    read = read_team_file(team or DEFAULT_TEAM, environment, imports=False)
    # A drawing needs no keys, no tokens of tool servers, and no storage for facts.
    config = read.config.model_copy(update={"tool_servers": {}})
    graph = build_graph(config, models=StandIns(read.models), store=InMemoryStore())
    drawing = graph.get_graph()
    return drawing.draw_ascii() if ascii_art else drawing.draw_mermaid()
