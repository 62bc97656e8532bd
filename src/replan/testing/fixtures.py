"""Fixtures for pytest: servers and models that play a script, checked at the end of each test.

Load them with `pytest_plugins = ["replan.testing.fixtures"]` in a `conftest.py`.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from replan.testing.scripted import ScriptedModel
    from replan.testing.server import OpenAIServer

# The imports are in the fixtures, so that loading this plugin does not load LangChain.
# ruff: noqa: PLC0415

_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember whether the test itself failed: then what is left of its script is no news."""
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report


@pytest.fixture
def openai_server(request: pytest.FixtureRequest) -> "Iterator[Callable[..., OpenAIServer]]":
    """A factory of started servers, `openai_server(script, **switches)`."""
    from replan.testing.server import OpenAIServer

    servers: list[OpenAIServer] = []
    with ExitStack() as stack:

        def start(script: Any, **switches: Any) -> OpenAIServer:
            server = OpenAIServer(script, **switches).start()
            stack.callback(server.close)
            servers.append(server)
            return server

        yield start
    _check(request, servers)


@pytest.fixture
def scripted(request: pytest.FixtureRequest) -> "Iterator[Callable[..., ScriptedModel]]":
    """A factory of scripted models, `scripted(replies)`."""
    from replan.testing.scripted import ScriptedModel

    models: list[ScriptedModel] = []

    def make(replies: Any, **options: Any) -> ScriptedModel:
        models.append(ScriptedModel(replies, **options))
        return models[-1]

    yield make
    _check(request, models)


def _check(
    request: pytest.FixtureRequest, players: "list[ScriptedModel] | list[OpenAIServer]"
) -> None:
    if request.node.stash.get(_FAILED, False):
        return
    for player in players:
        player.assert_finished()
