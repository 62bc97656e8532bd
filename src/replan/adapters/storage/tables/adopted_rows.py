"""The rows of a run that comes from elsewhere, written as this storage would have written them."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import exists, insert, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from replan.adapters.storage.stored_values import places
from replan.adapters.storage.stored_values.sealing import Seal
from replan.adapters.storage.tables import schema
from replan.ports.journal import RunRows, Spending
from replan.state.results import result_as_json

_TABLES = (schema.spending, schema.attempts, schema.results, schema.notes)


async def insert_rows(connection: AsyncConnection, seal: Seal, run_id: str, rows: RunRows) -> None:
    """Insert all rows of a run, or none of them if the run has rows here."""
    if await connection.scalar(
        select(or_(*(exists().where(t.c.run_id == run_id) for t in _TABLES)))
    ):
        return
    for table, values in zip(_TABLES, _values(seal, run_id, rows), strict=True):
        if values:
            await connection.execute(insert(table), [{"run_id": run_id, **each} for each in values])


def _values(seal: Seal, run_id: str, rows: RunRows) -> Sequence[list[dict[str, Any]]]:
    nothing = {f"reserved_{kind}": amount for kind, amount in Spending()}
    return (
        [
            {"scope": scope, **{f"settled_{kind}": each for kind, each in amount}, **nothing}
            for scope, amount in rows.spent.items()
        ],
        [
            {**dict(each), "error": seal.close(each.error, *places.of_attempt(each))}
            for each in (each.replace(run_id=run_id) for each in rows.attempts)
        ],
        [
            {"key": key, "result": seal.close(result_as_json(each), *places.of_result(run_id, key))}
            for key, each in rows.results.items()
        ],
        [
            {"key": key, "value": seal.close(value, *places.of_note(run_id, key))}
            for key, value in rows.notes
        ],
    )
