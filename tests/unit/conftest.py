"""Live things for the tests of single nodes: a team without models, a fixed clock, a log."""

import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from replan import Host, Specialist, Team
from replan.assembly import models_from_environment
from replan.assembly.team_services import services_of
from replan.storage.memory_log import memory_log
from replan.testing import ScriptedModel


@pytest.fixture
def services():
    """Build services: `services(model, work=..., retry_wait=...)`."""

    def build(model=None, *, work=lambda context: "done", **changes):
        team = [Specialist(name=name, intended_use="Works.", run=work) for name in ("a", "b")]
        config = Team(host=Host(model=model or ScriptedModel({})), specialists=team)
        live = services_of(config, models_from_environment(environment={}))
        fixed = {
            "log": memory_log(),
            "clock": lambda: datetime(2026, 1, 1, 12, tzinfo=UTC),
            "new_id": lambda: "new-run",
            "retry_wait": 0,
        }
        return replace(live, **{**fixed, **changes})

    return build


@pytest.fixture
def times_of_utc(monkeypatch):
    """Times are told in the zone of the machine; here they are the same everywhere."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
