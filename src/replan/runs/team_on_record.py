"""Which team a run belongs to: it stands on record where the run begins."""

from typing import Any, cast

from pydantic import JsonValue

from replan.calling.compiled import Graph, team_of
from replan.ports.run_book import RunRecord

TEAM = "team"  # the label of a run of a server with its team, and the field of the others' orders


def with_team(order: dict[str, JsonValue], graph: Graph) -> JsonValue:
    """The stored input of a run, with the team that does it."""
    names: list[JsonValue] = [card.name for card in team_of(graph)]
    return {**order, TEAM: {"name": graph.name, "specialists": names}}


def is_of_team(record: RunRecord, graph: Graph) -> bool:
    """Whether a run belongs to the team of a graph.

    The name of the team must be the one on record, and the team must still have all specialists
    that it had. A run of a server has the name only. If nothing is on record, it belongs to none.
    """
    order = record.order if isinstance(record.order, dict) else {}
    team = order.get(TEAM)
    if not isinstance(team, dict):
        return record.labels.get(TEAM) == graph.name
    before, now = cast("Any", team), {card.name for card in team_of(graph)}
    return before.get("name") == graph.name and now.issuperset(before.get("specialists", []))
