"""Storage of every kind, for tests that must hold for all of them."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from databases import opened_database
from replan import Storage, open_storage
from replan.storage.databases.cipher import Cipher
from replan.storage.databases.database import Database
from replan.storage.databases.encryption import cipher_of
from replan.storage.pipeline_threads import Threads
from replan.storage.sessions import Sessions
from replan.storage.store import Store

Opener = Callable[..., AbstractAsyncContextManager[Storage]]

# What encrypts knows nothing of the database, so most tests need each of both once, not all four.
LASTING = ["encrypted sqlite", "postgres"]

# What is looked for by words is found in another way in each.
EVERY = ["memory", "sqlite", "encrypted sqlite", "postgres", "encrypted postgres"]


def _opener(kind: str, request: pytest.FixtureRequest) -> Opener:
    if kind == "memory":
        where: Any = ":memory:"
    elif kind.endswith("postgres"):
        is_sealed = kind.startswith("encrypted")
        where = request.getfixturevalue("empty_database" if is_sealed else "postgres_database")
    else:
        where = request.getfixturevalue("tmp_path") / "runs.sqlite"
    key = "a key that only the test knows" if kind.startswith("encrypted") else None

    def opened(**options: Any) -> AbstractAsyncContextManager[Storage]:
        return open_storage(where, **{"key": key, **options})

    opened.where = str(where)  # pyright: ignore[reportFunctionMemberAccess]
    return opened


@dataclass
class Tables:
    """What a database has beside the runs."""

    database: Database
    cipher: Cipher

    def __post_init__(self) -> None:
        self.sessions = Sessions(self.database, self.cipher)
        self.store = Store(self.database, self.cipher)
        self.threads = Threads(self.database, self.cipher)

    def reopened(self) -> "Tables":
        """The same for another process, which has read nothing yet."""
        return Tables(self.database, self.cipher)


TablesOpener = Callable[[], AbstractAsyncContextManager[Tables]]


def tables_opener(kind: str, request: pytest.FixtureRequest) -> TablesOpener:
    is_postgres = kind.endswith("postgres")
    address = request.getfixturevalue("empty_database") if is_postgres else ""
    path = request.getfixturevalue("tmp_path") / "runs.sqlite"
    cipher = Cipher()
    if kind.startswith("encrypted"):
        cipher = cipher_of("a key that only the test knows", b"salt")

    @asynccontextmanager
    async def opened() -> AsyncGenerator[Tables]:
        async with opened_database(kind.removeprefix("encrypted "), path, address) as database:
            yield Tables(database, cipher)

    opened.where = address or str(path)  # pyright: ignore[reportFunctionMemberAccess]
    return opened


@pytest.fixture(params=["memory", *LASTING])
def opened(request: pytest.FixtureRequest) -> Opener:
    """Open storage of each kind."""
    return _opener(request.param, request)


@pytest.fixture(params=LASTING)
def lasting(request: pytest.FixtureRequest) -> Opener:
    """Open storage of each kind that outlives what opened it."""
    return _opener(request.param, request)


@pytest.fixture(params=["langgraph's own", "memory", *LASTING])
async def any_store(request: pytest.FixtureRequest) -> Any:
    """LangGraph's store, and ours in each kind of storage: what is true of all is defined."""
    if request.param == "langgraph's own":
        yield InMemoryStore()
        return
    async with tables_opener(request.param, request)() as storage:
        yield storage.store


@pytest.fixture(params=EVERY)
async def store(request: pytest.FixtureRequest) -> Any:
    """The store in each kind of storage."""
    async with tables_opener(request.param, request)() as storage:
        yield storage.store


@pytest.fixture(params=EVERY[1:])
def lasting_of_every_kind(request: pytest.FixtureRequest) -> TablesOpener:
    """Open storage of each kind that outlives what opened it, encrypted or not."""
    return tables_opener(request.param, request)


@pytest.fixture
async def storage(opened: Opener) -> Any:
    async with opened() as storage:
        yield storage


@pytest.fixture(params=["sqlite", "postgres"])
def where(request, tmp_path):
    """Give the place of a storage without tables, once for each kind."""
    if request.param == "postgres":
        return request.getfixturevalue("empty_database")
    return str(tmp_path / "runs.sqlite")
