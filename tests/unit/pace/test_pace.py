"""The parts of the benchmark at the pace of models, whose model takes no time here."""

import sys
from pathlib import Path

import pytest

from replan.testing import ChatRequest, OpenAIServer

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from http_runs import messages
from pace import Ran, checked, rows_of, sides, steps_in
from pace_workloads import (
    MODELS,
    SIDES,
    WORKLOADS,
    model_name,
    play,
    said_to,
    tokens_of,
)

from replan.prompts.sections import Call, call_of
from replan.replies.readings import read_feedback


@pytest.fixture(scope="module")
def base_url():
    with OpenAIServer(play, models=tuple(MODELS)) as server:
        yield server.base_url


@pytest.mark.parametrize("name", ["K4", "K6", "fan-out of 8"])
async def test_both_sides_make_the_calls_of_a_workload_and_hear_what_is_said_to_them(
    name, base_url
):
    workload = WORKLOADS[name]
    begins = sides(workload, base_url, at_once=True)
    ran = {side: await checked(workload, side, begins[side]) for side in SIDES}
    assert ran["floor"].calls == ran["replan"].calls
    assert ran["when needed"].calls == ran["replan"].calls - workload.is_foreseeable
    for side, each in ran.items():
        judgements = workload.judgements[: each.calls - sum(map(len, workload.steps.values())) - 1]
        replies = [said_to(side, workload, reply) for reply in (workload.plan, *judgements)]
        assert each.host_out == sum(map(tokens_of, replies))
        assert each.host_in > 1_000 * bool(judgements)


def test_what_replan_hears_differs_in_briefs_and_in_answers_that_are_results():
    workload = WORKLOADS["K6"]
    plan = said_to("replan", workload, workload.plan)
    assert steps_in(plan)[0].task.count("。") == 2
    assert [step.after for step in steps_in(plan)] == [
        step.after for step in steps_in(workload.plan)
    ]
    assert said_to("replan", workload, workload.judgements[0]).endswith("\nanswer_step: 3\n---\n")
    assert "\nanswer_step: 3\n---\n" in said_to("when needed", workload, workload.plan)


async def test_a_run_with_other_calls_is_no_measure():
    async def begin():
        return Ran(calls=3)

    with pytest.raises(RuntimeError, match="3 calls instead of the 10 of K2"):
        await checked(WORKLOADS["K2"], "floor", begin)


def request_of(model, call, *, stream):
    told = tuple(messages(call, "You judge.", "x" * 4_000))
    return ChatRequest({"model": model, "stream": stream}, {}, 0.0, told, call_of(told))


@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_takes_as_long_as_its_tokens_say(stream):
    workload = WORKLOADS["K3"]
    reply = play(request_of(model_name(workload, "floor"), Call(node="think"), stream=stream))
    tokens_in, tokens_out = reply.usage
    seconds = reply.latency + (len(reply.pieces) - 1) * reply.chunk_delay * stream
    assert tokens_in > 1_000
    assert tokens_out == tokens_of(workload.plan)
    assert seconds == pytest.approx(0.6 + 0.0001 * tokens_in + 0.015 * tokens_out)


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_floor_reads_each_step_with_its_brief(name):
    workload = WORKLOADS[name]
    steps = {
        step.id: step for reply in (workload.plan, *workload.judgements) for step in steps_in(reply)
    }
    assert steps.keys() == workload.steps.keys()
    assert all(step.specialist in workload.team for step in steps.values())
    assert all(tokens_of(step.task) > 20 for step in steps.values())
    assert all(other in steps for step in steps.values() for other in step.after)


def test_an_answer_that_repeats_a_result_is_a_reference_for_replan_alone():
    for each in WORKLOADS.values():
        last = each.judgements[-1]
        assert "answer_step" not in said_to("replan", each, each.plan)
        assert said_to("floor", each, last) == last
        reading = read_feedback(said_to("replan", each, last))
        assert (reading.verdict, reading.answer_step) == ("complete", str(each.repeats or ""))
        assert bool(reading.body) == (each.repeats is None)


def test_an_answer_that_repeats_a_result_is_known_as_such():
    chain = WORKLOADS["chain of 6"]
    assert chain.judgements[-1].endswith(chain.steps[chain.repeats][-1].text)
    assert {each.name for each in WORKLOADS.values() if each.repeats is None} == {
        "K4",
        "fan-out of 8",
        "DAG of 20",
    }


def test_the_tables_judge_time_over_the_floor_and_the_hosts_tokens_over_todays():
    ran = {
        name: {
            "floor": [Ran(10.0, 8, 900, 500)],
            "replan": [Ran(8.0, 8, 1_000, 300)],
            "when needed": [Ran(7.0, 7, 900, 250)],
        }
        for name in WORKLOADS
    }
    today = {name: {"over the floor": 1.0, "host in": 2_000, "host out": 300} for name in WORKLOADS}
    rows = rows_of(ran, today)
    judged = {row.get("workload") or row[""]: row["met"] for row in rows if row.get("target")}
    assert judged == {
        "fan-out of 8": "yes",
        "DAG of 20": "no",
        "K2 to K6": "yes",
        "host in": "yes",
        "host out": "no",
    }
    assert rows[0]["when needed"] == 0.7
    assert [row for row in rows if "differ" in row["table"]]


def test_without_an_earlier_measure_no_tokens_are_judged():
    ran = {"K2": {side: [Ran(10.0)] for side in SIDES}}
    assert [row for row in rows_of(ran, {}) if row.get("target")] == []
