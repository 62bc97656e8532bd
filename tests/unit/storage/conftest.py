"""Storage of every kind, for tests that must hold for all of them."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from replan import Storage, open_storage

Opener = Callable[..., AbstractAsyncContextManager[Storage]]

# What encrypts knows nothing of the database, so most tests need each of both once, not all four.
LASTING = ["encrypted sqlite", "postgres"]


def _opener(kind: str, request: pytest.FixtureRequest) -> Opener:
    if kind == "memory":
        where: Any = ":memory:"
    elif kind.endswith("postgres"):
        where = request.getfixturevalue("postgres_database")
    else:
        where = request.getfixturevalue("tmp_path") / "runs.sqlite"
    key = "a key that only the test knows" if kind.startswith("encrypted") else None

    def opened(**options: Any) -> AbstractAsyncContextManager[Storage]:
        return open_storage(where, **{"key": key, **options})

    opened.where = str(where)  # pyright: ignore[reportFunctionMemberAccess]
    return opened


@pytest.fixture(params=["memory", *LASTING])
def opened(request: pytest.FixtureRequest) -> Opener:
    """Open storage of each kind."""
    return _opener(request.param, request)


@pytest.fixture(params=LASTING)
def lasting(request: pytest.FixtureRequest) -> Opener:
    """Open storage of each kind that outlives what opened it."""
    return _opener(request.param, request)


@pytest.fixture
async def storage(opened: Opener) -> Any:
    async with opened() as storage:
        yield storage
