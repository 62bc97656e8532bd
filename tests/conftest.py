"""What every test stands on: no tracing, nobody's keys, one event loop, hypothesis profiles."""

import gc
import os
import sys
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

# Before anything of LangChain is imported. A test talks to nobody outside, and what an operator
# has in the environment decides nothing here.
_LEAKING = ("OPENAI_", "LANGSMITH_", "LANGCHAIN_", "LANGGRAPH_", "OTEL_", "REPLAN_")
for _name in list(os.environ):
    # What is meant for the tests, such as the address of a database, stays.
    if _name.startswith(_LEAKING) and not _name.startswith("REPLAN_TEST_"):
        del os.environ[_name]
os.environ["LANGSMITH_TRACING"] = "false"
# A proxy must not come between a test and its server on loopback.
for _name in ("NO_PROXY", "no_proxy"):
    os.environ[_name] = "127.0.0.1,localhost,::1"

# Each client of a model reads all authorities that the system trusts, which takes longer than most
# tests; nobody on loopback shows a certificate.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = os.devnull

# numpy would begin threads for matrices that no test has, and nothing may be forked beside threads.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

# What tests share stands beside them.
sys.path.insert(0, str(Path(__file__).parent))
if TYPE_CHECKING:
    from postgres import PostgresServer
    from replan import Storage

# `default` draws the same examples on every run, so `make test` has one answer for one commit;
# `fuzz` (make check) draws new ones. A slow machine is not a failure, hence no deadline.
settings.register_profile(
    "default",
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "fuzz",
    max_examples=100,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
_PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "default")
settings.load_profile(_PROFILE)

KINDS = ("sqlite", "postgres")
pytest_plugins = ["replan.testing.fixtures", "forks"] + ["fuzzing"] * (_PROFILE == "fuzz")


_started = pytest.StashKey[ExitStack]()


def pytest_configure(config: pytest.Config) -> None:
    """One server of warm processes for all that run tests; they find it in their environment."""
    import warm  # noqa: PLC0415 - it stands beside the tests

    started = config.stash[_started] = ExitStack()
    config.add_cleanup(started.close)
    # For many tests it imports at once, beside this process, which has all tests to import.
    started.callback(warm.started_server(at_once=config.option.processes > 1))
    if config.option.processes > 1:
        from postgres import DSN, SharedServer  # noqa: PLC0415 - needs what is in the environment

        if DSN not in os.environ:
            config.pluginmanager.register(SharedServer(started))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage in what is there before the tests: it is large, and stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        # With Python's own threshold, a twentieth of the tests goes into looking again and again.
        gc.set_threshold(10_000)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the servers of Studio: others work while they are waited for."""
    items[:] = _in_turns(items)
    items.sort(key=lambda item: "serve_studio" not in getattr(item, "fixturenames", ()))


def _in_turns(items: list[pytest.Item]) -> list[pytest.Item]:
    """Leave out what a module wants with one kind of storage, and has with another one, too.

    What a store has to do with it, the tests of storage prove for each kind.
    """
    names = {item.nodeid for item in items}

    def is_wanted(item: pytest.Item) -> bool:
        kind = next((each for each in KINDS if f"[{each}" in item.nodeid), "")
        if not kind or item.get_closest_marker("one_store") is None:
            return True
        both = [item.nodeid.replace(f"[{kind}", f"[{each}") for each in KINDS]
        return not names.issuperset(both) or item.nodeid == both[crc32(both[0].encode()) % 2]

    return list(filter(is_wanted, items))


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """End the servers before coverage puts together what was measured."""
    try:
        return (yield)
    finally:
        session.config.stash[_started].close()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """LangGraph runs on asyncio, so the tests do."""
    return "asyncio"


@pytest.fixture(scope="session")
def postgres_dsn() -> Iterator[str]:
    """The address of a real PostgreSQL: the one that the environment names, or one of our own."""
    from postgres import DSN, drop_databases, running_server  # noqa: PLC0415 - most need none

    if named := os.environ.get(DSN):
        yield named
        drop_databases(named)
        return
    with running_server() as server:
        yield server.dsn


@pytest.fixture
def postgres_database(postgres_dsn: str) -> Iterator[str]:
    """The address of a database with all tables of storage without a key, and no runs."""
    from postgres import ready_database  # noqa: PLC0415 - most tests need none

    with ready_database(postgres_dsn) as address:
        yield address


@pytest.fixture
def empty_database(postgres_dsn: str) -> Iterator[str]:
    """The address of an empty database."""
    from postgres import fresh_database  # noqa: PLC0415 - most tests need none

    with fresh_database(postgres_dsn) as address:
        yield address


@pytest.fixture(params=KINDS)
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the place of a storage, once for each kind; a test may name the kind, indirectly."""
    if request.param == "postgres":
        return request.getfixturevalue("postgres_database")
    return str(tmp_path / "runs.sqlite")


@pytest.fixture
async def storage() -> AsyncIterator["Storage"]:
    """Give a storage in memory."""
    from replan import open_storage  # noqa: PLC0415 - most tests need none

    async with open_storage(":memory:") as opened:
        yield opened


@pytest.fixture
def postgres_server() -> "Iterator[PostgresServer]":
    """A server that the test may kill."""
    from postgres import running_server  # noqa: PLC0415 - most tests need none

    with running_server() as server:
        yield server


@pytest.fixture(autouse=True)
def nothing_is_known_to_be_secret() -> Iterator[None]:
    """What one test hands in as a key is an ordinary word in all others."""
    from replan.base.secrets.masking import KNOWN  # noqa: PLC0415 - not before the environment is clean

    yield
    KNOWN.clear()


@pytest.fixture(scope="session", autouse=True)
def commands_are_made_once() -> None:
    """Typer makes all commands anew for each one that is typed, which takes longer than most."""
    from typer import testing  # noqa: PLC0415 - not before the environment is clean

    testing._get_command = cache(testing._get_command)  # noqa: SLF001


@pytest.fixture(scope="session", autouse=True)
def templates_are_compiled_once() -> None:
    """Each server of pages compiles its templates anew, which takes longer than most pages."""
    from jinja2 import Environment  # noqa: PLC0415 - not before the environment is clean

    compiled, known = Environment.compile, {}

    def compile_once(self, *source):
        if source not in known:
            known[source] = compiled(self, *source)
        return known[source]

    Environment.compile = compile_once


@pytest.fixture(scope="session", autouse=True)
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder where the terminal keeps its runs, and the one with its key: nobody's own."""
    folder = tmp_path_factory.mktemp("data")
    os.environ["XDG_DATA_HOME"] = str(folder)
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path_factory.mktemp("config"))
    return folder
