"""What the metrics of a process count, in the words and numbers that reports have."""

from made_runs import event
from replan.traces.watch import Watch


def counted(*events):
    watch = Watch()
    for each in events:
        watch.on_event("t", each)
    return watch.written("")[0].decode()


def test_a_summary_counts_as_the_calls_that_it_took():
    took = {"model": "m", "calls": 2, "input_tokens": 10, "output_tokens": 3, "cost": 0.5}
    figures = counted(event(1, 1, "memory_summary", covered=3, seconds=4.0, **took))
    assert 'replan_model_call_seconds_count{model="m",result="ok",team="t"} 2.0' in figures
    assert 'replan_model_call_seconds_sum{model="m",result="ok",team="t"} 4.0' in figures
    assert 'replan_model_tokens_total{kind="input",model="m",team="t"} 10.0' in figures
    assert 'replan_model_tokens_total{kind="output",model="m",team="t"} 3.0' in figures
    assert 'replan_model_cost_total{model="m",team="t"} 0.5' in figures


def test_a_run_whose_work_failed_is_interrupted_and_counts_as_an_error():
    figures = counted(
        event(1, 1, "run_stopped", reason="failed", error="TypeError: no", seconds=2.0),
        event(2, 2, "run_stopped", reason="waiting", seconds=3.0),
        event(3, 3, "specialist_completed", status="partial", step_seconds=1.0),
    )
    assert 'replan_runs_total{outcome="interrupted",team="t"} 1.0' in figures
    assert 'replan_runs_total{outcome="waiting",team="t"} 1.0' in figures
    assert 'replan_run_errors_total{team="t"} 1.0' in figures
    assert 'replan_run_seconds_sum{team="t"} 5.0' in figures
    assert 'status="failed",team="t"} 1.0' in figures
