"""Which team a run belongs to, and who may continue it: it stands on record."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import JsonValue

from replan.log.labels import SESSION, TEAM
from replan.log.report import RunReport
from replan.ports.run_book import DEFAULT, PYTHON, RunRecord, TeamIdentity
from replan.runs.calling.compiled import Graph, services_in, team_of

TERMINAL_OPTIONS = frozenset({"task", "team", "directory", "out", "plan_out", "base_url"})
"""What is always on record of the options of a terminal."""

_MEMBERS = "specialists"
"""The field of the stored input of a run with the members of its team."""


def identity_of(graph: Graph) -> TeamIdentity:
    """What the runs of a graph are known to be done by."""
    services = services_in(graph)
    return services.identity if services else TeamIdentity.of(graph.name, graph.name, PYTHON)


def team_for(labels: Mapping[str, str], team: TeamIdentity) -> TeamIdentity:
    """The team of a run: a server may have another name for it."""
    return team.replace(name=labels.get(TEAM, team.name))


def changes_of_team(record: RunRecord, team: TeamIdentity) -> tuple[str, ...]:
    """Say that another version of its team continues a run; nothing if it is the same one."""
    before = record.team
    if before is None or before.digest == team.digest:
        return ()
    was, now = f"{before.digest} ({before.source})", f"{team.digest} ({team.source})"
    return (f"The team '{before.name}' of this run has changed: it was {was}, and is {now}.",)


def is_of_terminal(record: RunRecord) -> bool:
    """Whether a terminal began a run, with its own options."""
    return isinstance(record.order, dict) and record.order.keys() >= TERMINAL_OPTIONS


def team_name(record: RunRecord | RunReport) -> str:
    """The name of the team of a run; empty if it is not known, or a terminal's session."""
    if isinstance(record, RunReport):
        return record.team
    if TEAM in record.labels or SESSION in record.labels or record.team is None:
        return record.labels.get(TEAM, "")
    return record.team.name


@dataclass(frozen=True, kw_only=True)
class Continuing:
    """Who continues a run.

    Attributes:
        team: The name of the team that is here; empty if none of them does.
        by_options: Whether the team of the terminal's own options does.
        missing: What is missing for it; empty if somebody continues it.
        code: The kind of what is missing.
    """

    team: str = ""
    by_options: bool = False
    missing: str = ""
    code: str = ""


def who_continues(
    record: RunRecord, here: Collection[str], *, is_operator: bool, is_signed: bool = False
) -> Continuing:
    """Decide who may continue a run.

    Args:
        record: The run.
        here: The names of the teams that are here.
        is_operator: Whether who asks is bound to no tenant and has no limits.
        is_signed: Whether who asks has signed the options of the terminal that began it, and they
            can be followed here.
    """
    name, run = team_name(record), record.run_id[:8]
    if TEAM not in record.labels:
        if not is_operator:
            missing = "The program that began this run has no tenant and no limits: act on it there"
            return Continuing(
                missing=f"{missing}, as with replan resume {run}.", code="not_allowed"
            )
        if is_signed:
            return Continuing(by_options=True)
    if name in here:
        return Continuing(team=name)
    there = f" Here are: {', '.join(here)}." if here else ""
    source = record.team.source if record.team else PYTHON
    file = "" if source in (DEFAULT, PYTHON) else f", {source},"
    where = f"Add its team file{file} or continue it at a terminal: replan resume {run}."
    missing = f"The team '{name}' of this run is not here.{there} {where}"
    if not is_of_terminal(record):
        return Continuing(missing=missing, code="other_team")
    unsigned = "Its stored options were written by somebody else, or were changed since."
    return Continuing(missing=f"{missing} {unsigned}", code="unsigned")


def with_team(order: dict[str, JsonValue], graph: Graph) -> JsonValue:
    """The stored input of a run, with the specialists that it may name."""
    names: list[JsonValue] = [card.name for card in team_of(graph)]
    return {**order, _MEMBERS: names}


def has_team_of(record: RunRecord, graph: Graph) -> bool:
    """Whether a graph can have the team of a run, and not only a look at it."""
    services = services_in(graph)
    is_same = record.team is None or record.team.digest == identity_of(graph).digest
    return services is not None and is_same


def is_of_team(record: RunRecord, graph: Graph, team: TeamIdentity) -> bool:
    """Whether a run of a program or a server belongs to a team.

    The name of the team must be the one on record, and the team must still have all specialists
    that it had. A run with an order of its own, as a terminal gives it, belongs to none.
    """
    order = record.order if isinstance(record.order, dict) else {}
    if TEAM not in record.labels and _MEMBERS not in order:
        return False
    name = record.labels.get(TEAM, record.team_name)
    now = {card.name for card in team_of(graph)}
    return name == team.name and now.issuperset(cast("Any", order.get(_MEMBERS, [])))
