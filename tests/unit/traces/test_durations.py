"""The durations of a run that goes on count the work of its earlier parts."""

import pytest

from replan.events import RunStarted, SpecialistCompleted, SpecialistInvoked
from replan.state.results import SpecialistResult
from replan.traces.tracing import tracing_of
from seen_spans import Seen


def test_a_run_and_a_step_that_go_on_count_from_where_they_began():
    seen, about = Seen(), {"run_id": "r", "round": 1}
    trace = tracing_of(seen.traces).begin("team", "t", "", {"run": 100.0, (1, "w"): 50.0})
    trace.take(RunStarted(**about, request="Go"))
    for step in (1, 2, 1):
        of_step = {**about, "step_id": step, "specialist": "w", "attempt": 1}
        trace.take(SpecialistInvoked(**of_step, task="t"))
        trace.take(SpecialistCompleted(**of_step, result=SpecialistResult()))
    trace.end(None)
    sums = {name: value for name, _, value in seen.points}
    assert sums["replan.run.duration"] == pytest.approx(100, abs=5)
    # The step that is done once more begins anew.
    assert sums["replan.step.duration"] == pytest.approx(50, abs=5)
