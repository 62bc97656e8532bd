"""Take a run's checkpoints off its thread, as a server does that rolls a run back."""

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid5

from sqlalchemy import (
    ColumnClause,
    TableClause,
    Text,
    and_,
    cast,
    column,
    delete,
    exists,
    func,
    or_,
    select,
    table,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from replan.adapters.storage.database import Database
from replan.langgraph_inside.checkpoints import INPUT, INTERRUPT, RESUME

Place = tuple[str, str]  # a thread, and a namespace of its checkpoints

Lineage = Mapping[str, str | None]  # checkpoints, with the one that each continues from


def _langgraphs(name: str, *names: str) -> TableClause:
    columns: list[ColumnClause[Any]] = [
        column(each) for each in ("thread_id", "checkpoint_ns", *names)
    ]
    return table(name, *columns)


_CHECKPOINTS = _langgraphs(
    "checkpoints", "checkpoint_id", "parent_checkpoint_id", "checkpoint", "metadata"
)
_WRITES = {
    "sqlite": _langgraphs("writes", "checkpoint_id", "task_id", "channel"),
    "postgresql": _langgraphs("checkpoint_writes", "checkpoint_id", "task_id", "channel"),
}
_BLOBS = _langgraphs("checkpoint_blobs", "channel", "version")
_RUN_OF = {
    "sqlite": func.json_extract(cast(_CHECKPOINTS.c.metadata, Text), "$.run_id"),
    "postgresql": _CHECKPOINTS.c.metadata.op("->>")("run_id"),
}

logger = logging.getLogger(__name__)


async def places_of(database: Database, run_id: str) -> Mapping[Place, Lineage]:
    """The checkpoints that a run wrote, by where they are."""
    rows = _CHECKPOINTS.c
    query = select(
        rows.thread_id, rows.checkpoint_ns, rows.checkpoint_id, rows.parent_checkpoint_id
    ).where(_RUN_OF[database.engine.dialect.name] == run_id)

    async def work(connection: AsyncConnection) -> Sequence[Any]:
        return (await connection.execute(query)).all()

    found: dict[Place, dict[str, str | None]] = defaultdict(dict)
    for row in await database.read(work):
        found[row.thread_id, row.checkpoint_ns][row.checkpoint_id] = row.parent_checkpoint_id
    return found


async def take_away(database: Database, place: Place, lineage: Lineage) -> None:
    """Remove checkpoints that no later run continues from, and the run's writes on the last one."""
    rows, writes = _CHECKPOINTS.c, _WRITES[database.engine.dialect.name]
    before = {parent for parent in lineage.values() if parent and parent not in lineage}
    later = select(rows.checkpoint_id).where(
        _at(_CHECKPOINTS, place),
        rows.parent_checkpoint_id.in_(lineage),
        rows.checkpoint_id.not_in(lineage),
    )

    async def work(connection: AsyncConnection) -> None:
        if await connection.scalar(later.limit(1)) is not None:
            logger.warning("kept a run to be rolled back: another continues from it")
            return
        for each in (writes, _CHECKPOINTS):
            doomed = and_(_at(each, place), each.c.checkpoint_id.in_(lineage))
            await connection.execute(delete(each).where(doomed))
        for parent in before:
            await connection.execute(delete(writes).where(_left_on(parent, writes, place)))
        if database.is_postgres:
            await connection.execute(delete(_BLOBS).where(_at(_BLOBS, place), ~_is_used(place)))

    await database.write(work)


def _at(rows: TableClause, place: Place) -> Any:
    return and_(rows.c.thread_id == place[0], rows.c.checkpoint_ns == place[1])


def _left_on(parent: str, writes: TableClause, place: Place) -> Any:
    """The input or the answers with which a run continued from a checkpoint of an earlier one."""
    given = writes.c.task_id == str(uuid5(UUID(parent), INPUT))
    here = and_(_at(writes, place), writes.c.checkpoint_id == parent)
    asked = select(writes.c.task_id).where(here, writes.c.channel == INTERRUPT)
    is_answered = and_(writes.c.task_id.in_(asked), writes.c.channel != INTERRUPT)
    return and_(here, or_(given, writes.c.channel == RESUME, is_answered))


def _is_used(place: Place) -> Any:
    versions = _CHECKPOINTS.c.checkpoint.op("->")("channel_versions")
    is_version = versions.op("->>")(_BLOBS.c.channel) == _BLOBS.c.version
    return exists().where(_at(_CHECKPOINTS, place), is_version)
