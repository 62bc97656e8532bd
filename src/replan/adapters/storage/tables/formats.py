"""The format of storage: how it is made, known and upgraded, the same in SQLite and PostgreSQL.

Everything here works in the transaction that is open on a connection, so that a process that is
killed leaves what was there before.
"""

import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from sqlalchemy import Connection, Dialect, insert, inspect, select, update
from sqlalchemy.schema import CreateIndex, CreateTable

from replan.adapters.storage.faults import DAMAGED
from replan.adapters.storage.stored_values.sealing import Facts
from replan.adapters.storage.tables.schema import facts as facts_table, metadata
from replan.errors import StorageError

Migration = Callable[[Connection], None]
"""Changes storage of one format into the next, inside the transaction open on the connection."""

MIGRATIONS: tuple[Migration, ...] = ()
"""From format 1 to 2, and so on. Each speaks SQL of its own: `schema` is the newest format only."""

FORMAT = len(MIGRATIONS) + 1
"""The format that this version makes, and to which it upgrades older ones."""

LEFT = f"It was left as it was. {DAMAGED.fix}"
"""What to do with what is damaged, where nothing of it was touched."""

_NEEDED = frozenset({"salt", "token"})
_UNRELEASED = (
    "It was made by a state of Replan before its first release, which this version does not read."
)


def read_facts(connection: Connection, where: str) -> Facts:
    """Read the storage's data about itself; empty without any."""
    tables = _tables_in(connection)
    if facts_table.name not in tables:
        return {}
    rows = connection.execute(select(facts_table))
    facts = {str(row.name): bytes(row.value) for row in rows}
    try:
        found, release = _format_of(connection), facts.get("release", b"").decode()
    except ValueError as error:
        raise StorageError(where, DAMAGED.problem, LEFT) from error
    schema = facts.get("schema", b"").decode(errors="replace")
    if facts and not schema:
        raise StorageError(where, _UNRELEASED, "It is unchanged: name another place.")
    if found > FORMAT:
        release = release or "a newer release"
        raise StorageError(
            where,
            f"It was written by a newer version of Replan ({release}, format {found}; this one "
            f"knows format {FORMAT}).",
            "It is unchanged: upgrade Replan, or name another place.",
        )
    if schema and found == FORMAT and schema != _schema_digest(type(connection.dialect)):
        raise StorageError(where, _UNRELEASED, "It is unchanged: name another place.")
    # What tables an older format has, its migrations know.
    has_tables = 0 < found < FORMAT or (found == FORMAT and tables >= metadata.tables.keys())
    if facts and not (has_tables and facts.keys() >= _NEEDED):
        raise StorageError(where, DAMAGED.problem, LEFT)
    return facts


def make(connection: Connection, facts: Facts, where: str) -> None:
    if not metadata.tables.keys().isdisjoint(_tables_in(connection)):
        raise StorageError(where, DAMAGED.problem, LEFT)
    for table in metadata.sorted_tables:
        connection.execute(CreateTable(table))
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            connection.execute(CreateIndex(index))
    signed = ("release", "schema") if _is_sqlite(connection) else ("release", "schema", "version")
    for name, value in {**facts, **dict.fromkeys(signed, b"")}.items():
        connection.execute(insert(facts_table).values(name=name, value=value))
    _sign(connection, FORMAT)


def upgrade(
    connection: Connection, where: str, migrations: Sequence[Migration] = MIGRATIONS
) -> None:
    """Bring storage of an older format to the newest."""
    found = _format_of(connection)
    for migrate in migrations[found - 1 :]:
        migrate(connection)
    if found <= len(migrations):
        _sign(connection, len(migrations) + 1)
    if not _tables_in(connection) >= metadata.tables.keys():
        raise StorageError(where, DAMAGED.problem, LEFT)


def _format_of(connection: Connection) -> int:
    """The number of the format; 0 before it is made."""
    if _is_sqlite(connection):
        return int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())
    query = select(facts_table.c.value).where(facts_table.c.name == "version")
    return int(connection.scalar(query) or 0)


def _sign(connection: Connection, number: int) -> None:
    written = {"release": _release(), "schema": _schema_digest(type(connection.dialect))}
    if _is_sqlite(connection):
        connection.exec_driver_sql(f"PRAGMA user_version = {number}")
    else:
        written["version"] = str(number)
    for name, value in written.items():
        row = update(facts_table).where(facts_table.c.name == name)
        connection.execute(row.values(value=value.encode()))


def _tables_in(connection: Connection) -> frozenset[str]:
    return frozenset(inspect(connection).get_table_names())


def _release() -> str:
    try:
        return version("replan")
    except PackageNotFoundError:
        return "0+source"


@cache
def _schema_digest(dialect: type[Dialect]) -> str:
    """What tells one state of the unreleased format from another."""
    tables = metadata.sorted_tables
    statements = [CreateTable(each) for each in tables]
    written = "".join(str(each.compile(dialect=dialect())) for each in statements)
    return hashlib.sha256(written.encode()).hexdigest()[:16]


def _is_sqlite(connection: Connection) -> bool:
    return connection.dialect.name == "sqlite"
