"""What every test stands on: no tracing, nobody's keys, one event loop, hypothesis profiles."""

import os

import pytest
from hypothesis import HealthCheck, settings

# Before anything of LangChain is imported. A test talks to nobody outside, and what an operator
# has in the environment decides nothing here.
_LEAKING = ("OPENAI_", "LANGSMITH_", "LANGCHAIN_", "LANGGRAPH_", "REPLAN_")
for _name in list(os.environ):
    # What is meant for the tests, such as the address of a database, stays.
    if _name.startswith(_LEAKING) and not _name.startswith("REPLAN_TEST_"):
        del os.environ[_name]
os.environ["LANGSMITH_TRACING"] = "false"
# A proxy must not come between a test and its server on loopback.
for _name in ("NO_PROXY", "no_proxy"):
    os.environ[_name] = "127.0.0.1,localhost,::1"

pytest_plugins = ["replan.testing.fixtures"]

# `default` draws the same examples on every run, so `make test` has one answer for one commit;
# `thorough` (make check) draws new ones. A slow machine is not a failure, hence no deadline.
settings.register_profile(
    "default",
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough",
    max_examples=400,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """LangGraph runs on asyncio, so the tests do."""
    return "asyncio"
