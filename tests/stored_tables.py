"""The tables of storage, looked at and changed from outside."""

from collections.abc import Generator
from contextlib import contextmanager
from functools import cache

from sqlalchemy import (
    Column,
    Connection,
    DefaultClause,
    Engine,
    MetaData,
    NullPool,
    UniqueConstraint,
    create_engine,
    event,
    select,
    text,
)


@contextmanager
def changing(where: str) -> Generator[Connection]:
    """Change storage from outside, in one transaction."""
    with _engine(where).begin() as connection:
        yield connection


@cache
def _engine(where: str) -> Engine:
    """What connects; it keeps no connection, but knows the database from the first one."""
    is_postgres = where.startswith("postgresql")
    address = where.replace("postgresql", "postgresql+psycopg", 1)
    engine = create_engine(address if is_postgres else f"sqlite:///{where}", poolclass=NullPool)
    if not is_postgres:
        # Else the driver would begin before the first write, and commit what changes a table.
        event.listen(engine, "connect", lambda driven, _: setattr(driven, "isolation_level", None))
        event.listen(engine, "begin", lambda begun: begun.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine


def schema(metadata: MetaData) -> dict[str, object]:
    """The tables with their columns, keys and indexes, in no order."""
    return {
        table.name: {
            "columns": sorted(
                (each.name, str(each.type), bool(each.nullable), _default(each))
                for each in table.columns
            ),
            "key": list(table.primary_key.columns.keys()),
            "unique": sorted(
                each.columns.keys()
                for each in table.constraints
                if isinstance(each, UniqueConstraint)
            ),
            "indexes": sorted(
                (str(each.name), str(each.columns.keys()), each.unique) for each in table.indexes
            ),
        }
        for table in metadata.tables.values()
    }


def _default(column: Column[object]) -> str:
    made = column.server_default
    return str(made.arg) if isinstance(made, DefaultClause) else str(made)


def picture(where: str) -> dict[str, object]:
    """All that storage holds: its format, its tables and their rows."""
    rows: dict[str, object] = {}
    metadata = MetaData()
    with changing(where) as connection:
        # The index of words is no part of the format: it is made when it is first needed.
        metadata.reflect(connection, only=lambda name, _: not name.startswith("replan_words"))
        for table in metadata.sorted_tables:
            rows[table.name] = sorted(map(str, connection.execute(select(table))))
        if connection.dialect.name == "sqlite":
            rows["user_version"] = connection.execute(text("PRAGMA user_version")).scalar()
    return {"schema": schema(metadata), "rows": rows}
