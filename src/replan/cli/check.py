"""`replan check`: a plan or a team, before anything runs; without a team, without any framework."""
# ruff: noqa: PLC0415 - only a team needs LangChain

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from replan.base.errors import DeclaredFileError, InputError, JobFileError, TeamFileError
from replan.base.texts.signs import harmless
from replan.cli.shared import options
from replan.cli.shared.process import GOOD, WRONG_USE, as_command
from replan.cli.user_files.plan_text import read_plan_text
from replan.views.cells import columns, counted, one_line

if TYPE_CHECKING:
    from replan.team.team_file import TeamFile
    from replan.views.ahead.preview import KnownTeam

_TEAM = re.compile(r"(?m)^specialists[ \t]*:")
_WIDEST_NAME = 27


@as_command
def check(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PLAN.md|TEAM.yaml...", help="A plan, a team file, or one of each."),
    ] = None,
    *,
    team: Annotated[
        Path | None,
        typer.Option(
            "--team",
            "-t",
            dir_okay=False,
            exists=True,
            help="The team file for the names and limits of the plan.",
        ),
    ] = None,
    job: Annotated[
        Path | None,
        typer.Option("--job", metavar="JOB.yaml", help="A job file."),
    ] = None,
    imports: Annotated[
        bool,
        typer.Option(
            "--import",
            help="Import the modules of the team file, as a run does; this runs their code.",
        ),
    ] = False,
    servers: Annotated[
        bool,
        typer.Option("--servers", help="Start the team's tool servers, and list their tools."),
    ] = False,
    as_json: options.Json = False,
) -> int:
    """Report the mistakes of a plan, a team or a job, or preview it with its bounds.

    A team file that is named with the plan is checked completely, with its models and their keys.
    Exit codes: 0 it can run, 2 it has mistakes, or a plan names specialists that the team does not
    have.
    """
    if job is not None:
        report, refused = _job_report(job, files, imports=imports)
    else:
        paths = files or ([] if team is None else [team])
        plan, own = _plan_and_team(paths)
        beside = team if files else None
        if own is not None and beside is not None:
            raise InputError("There are two team files. Name one of them.")
        found, refused = _read_team(own, beside, imports=imports)
        if plan is not None:
            report = _plan_report(plan, found)
        elif own is not None and found is not None:
            report = _team_report(own, found, starts=servers)
        else:
            report = _Report()
    if refused is not None:
        report = report.with_mistakes(refused)
    typer.echo(report.json() if as_json else report.text(), nl=False)
    if refused is not None and not as_json:
        raise refused
    return GOOD if report.is_good else WRONG_USE


@dataclass(frozen=True, kw_only=True)
class _Report:
    """What is said about a plan, a team or a job."""

    mistakes: Sequence[str] = ()  # its mistakes, as lines for people
    lines: Sequence[str] = ()  # what is ahead where it has none
    # All of it for programs; its mistakes are under `mistakes`.
    record: Mapping[str, Any] = field(default_factory=lambda: {"mistakes": []})
    is_good: bool = True

    def with_mistakes(self, error: DeclaredFileError) -> _Report:
        """Add the mistakes of a file; nothing can be said about what is ahead then."""
        added = [{"file": str(error.path), **asdict(mistake)} for mistake in error.mistakes]
        record = {"mistakes": [*self.record["mistakes"], *added]}
        return _Report(mistakes=self.mistakes, record=record, is_good=False)

    def json(self) -> str:
        return json.dumps(self.record) + "\n"

    def text(self) -> str:
        lines = [*self.mistakes, *self.lines]
        if self.mistakes:
            lines.append(counted(len(self.mistakes), "mistake"))
        return "".join(f"{harmless(line)}\n" for line in lines)


def _job_report(
    path: Path, files: Sequence[Path] | None, *, imports: bool
) -> tuple[_Report, JobFileError | None]:
    """Check a job file alone."""
    from replan.jobs.spec.job_file import read_job_file
    from replan.views.ahead.team_outlook import job_lines, job_outlook

    if files:
        raise InputError("A job file is checked alone. Leave out the other files.")
    try:
        spec = read_job_file(path, imports=imports)
    except JobFileError as error:
        return _Report(), error
    record: dict[str, Any] = {"mistakes": [], **job_outlook(spec)}
    return _Report(lines=[f"{path}: no mistakes", *job_lines(spec)], record=record), None


def _plan_and_team(files: Sequence[Path]) -> tuple[Path | None, Path | None]:
    """Return the plan and the team among files."""
    if not files:
        raise InputError("There is nothing to check. Name a plan, a team file, or --job FILE.")
    teams = [path for path in files if _is_team(path)]
    plans = [path for path in files if path not in teams]
    if len(plans) > 1 or len(teams) > 1:
        raise InputError("Check one plan and one team at a time: replan check PLAN.md TEAM.yaml.")
    return next(iter(plans), None), next(iter(teams), None)


def _is_team(path: Path) -> bool:
    """Whether a file is a team: by its ending, or else by its content."""
    if path.suffix.casefold() in (".yaml", ".yml", ".md"):
        return path.suffix.casefold() != ".md"
    return path.is_file() and _TEAM.search(read_plan_text(path)) is not None


def _read_team(
    own: Path | None, beside: Path | None, *, imports: bool
) -> tuple[KnownTeam | None, TeamFileError | None]:
    """Read the team; the models of one that is checked for its own sake are built, too."""
    path = own or beside
    if path is None:
        return None, None
    from replan.cli.shared.worst_case import team_of
    from replan.team.team_file import read_team_file

    try:
        team = read_team_file(path, os.environ, imports=imports)
        if own is not None:
            _check_models(team)
    except TeamFileError as error:
        return None, error
    return team_of(team.config, retries=team.models.retries), None


def _check_models(team: TeamFile) -> None:
    """Build the models and tool servers of a team, without starting anything."""
    from replan.team.chats import Chats
    from replan.team.tool_server import build_servers

    chats = Chats(team.models)
    chats.built(team.config.chat_models)
    chats.mistakes += build_servers(team.config.tool_servers, os.environ)[1]
    if chats.mistakes:
        raise team.config.refusal(chats.mistakes)


def _plan_report(path: Path, team: KnownTeam | None) -> _Report:
    from replan.plan.markdown.document import PlanDocument
    from replan.plan.rerun import reopened, rerun_reasons
    from replan.state.limits import Limits
    from replan.state.step_options import plan_mistakes
    from replan.views.ahead.outlook import outlook, outlook_lines
    from replan.views.ahead.preview import KnownTeam

    document = PlanDocument.recover(read_plan_text(path))
    if plan_mistakes(document):
        mistakes = plan_mistakes(document, None if team is None else team.cards)
        return _Report(
            mistakes=[f"{path}:{m.line}:{m.column}: {m.reason} {m.fix}" for m in mistakes],
            record={"mistakes": [asdict(mistake) for mistake in mistakes]},
            is_good=False,
        )
    team = team or KnownTeam(limits=Limits())
    reruns = rerun_reasons(document.plan)
    plan = reopened(document.plan, reruns)
    return _Report(
        lines=outlook_lines(plan, team, reruns),
        record={"mistakes": [], **outlook(plan, team, reruns)},
        is_good=not team.refusals(plan),
    )


def _team_report(path: Path, team: KnownTeam, *, starts: bool) -> _Report:
    """Report a team; with `starts`, its tool servers are started, and asked for their tools."""
    from replan.team.team_file import read_team_file
    from replan.views.ahead.outlook import bound_lines, bounds
    from replan.views.ahead.team_outlook import count_knowledge, knowledge_lines, known_servers

    cards = team.cards or ()
    rows = [(f"  @{card.name}", one_line(card.intended_use)) for card in cards]
    lines = [f"{path}: no mistakes", f"specialists: {len(cards)}"]
    lines += columns(rows, widest=_WIDEST_NAME)
    record: dict[str, Any] = {
        "mistakes": [],
        "specialists": [card.model_dump(mode="json") for card in cards],
    }
    if team.knowledge is not None:
        record["knowledge"] = count_knowledge(team.knowledge)
        lines += knowledge_lines(record["knowledge"])
    lines += bound_lines(team)
    record |= bounds(team)
    config = read_team_file(path, os.environ, imports=False).config
    if servers := known_servers(config, starts=starts):
        lines.append(f"tool servers: {len(servers)}")
        lines += [line for server in servers for line in server.lines]
        record["tool_servers"] = [server.model_dump(mode="json") for server in servers]
    is_good = all(server.problem is None for server in servers)
    return _Report(lines=lines, record=record, is_good=is_good)
