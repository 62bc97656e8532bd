"""Every run ends, within the bound that is known before it starts, and with an answer."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from replan import (
    Host,
    Limits,
    Specialist,
    SpecialistResult,
    Team,
    ask_user,
    run,
    run_sync,
)
from replan.assembly import models_from_environment
from replan.assembly.team_services import services_of
from replan.errors import ModelCallError
from replan.graph.build import host_graph
from replan.state.limits import MOST_RETRIES
from replan.testing import Hang, ScriptedModel, always

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from adversaries import adversary, play, play_over_http
from measure import Measure, measure

from scripts import DONE, THREAD

PARTS = 9
RUNS = 45
VARIED = (1, 2, 6, 7, 10, 11, 18, 21, 29)
"""Seeds below `RUNS` whose teams come to different ends."""


def team(model, *specialists, **options):
    limits = options.pop("limits", Limits())
    return Team(host=Host(model=model), specialists=specialists, limits=limits, **options)


def quick(config, **options):
    """Build a graph that does not wait between tries."""
    services = replace(services_of(config, models_from_environment()), retry_wait=0)
    return host_graph(services).compile(**options)


def worker(run, name="a"):
    return Specialist(name=name, intended_use="Works.", run=run)


@pytest.mark.parametrize("part", range(PARTS))
def test_whatever_a_team_does_its_runs_end_within_their_bound(part):
    # Each seed is another team, and the same one every time.
    for seed in range(part, RUNS, PARTS):
        faults = play(seed).faults(adversary(seed).config.limits)
        assert not faults, f"{seed}: {faults}"


@pytest.mark.parametrize("seed", range(4))
def test_with_a_real_client_the_calls_that_its_server_gets_stay_within_the_bound(seed):
    ended = play_over_http(seed)
    assert not ended.faults(adversary(seed).config.limits)
    assert ended.calls <= ended.bound


def test_the_adversaries_reach_all_ends():
    ends = [play(seed) for seed in VARIED]
    outcomes = {ended.state.get("outcome") for ended in ends}
    assert outcomes > {"answered", "completed", "partial", "failed", "rejected"}
    assert any(ended.refused for ended in ends)
    assert any(ended.is_left for ended in ends)
    assert max(len(ended.measures) for ended in ends) > 3


LEFT = Measure(rounds=3, able_steps=2, stalls=2, calls=9)


@pytest.mark.parametrize(
    ("later", "said", "falls"),
    [
        ({"rounds": 2, "able_steps": 1}, {}, True),
        ({"rounds": 2, "stalls": 1}, {}, True),
        ({"rounds": 2, "able_steps": 1, "stalls": 3}, {}, True),
        ({"rounds": 2, "able_steps": 9}, {"revised": True}, True),
        ({"rounds": 3, "able_steps": 3}, {"answers": 1}, True),
        ({"rounds": 3, "able_steps": 1}, {}, False),
        ({"rounds": 4}, {"answers": 1}, False),
        ({"rounds": 2}, {}, False),
        ({"rounds": 2, "able_steps": 3}, {}, False),
        ({"rounds": 2, "able_steps": 1, "calls": 10}, {}, False),
    ],
)
def test_what_counts_as_falling(later, said, falls):
    assert LEFT.falls_to(replace(LEFT, **later), **said) is falls


def test_a_run_without_a_plan_has_the_whole_of_its_limits_left():
    assert measure({}) == Measure(rounds=10, able_steps=0, stalls=2, calls=200)


def test_a_plan_cannot_ask_for_any_number_of_tries():
    tries = []

    def fails(context):
        tries.append(context.attempt)
        raise OSError("not now")

    model = ScriptedModel({"feedback": always(DONE), "final_answer": always("It failed.")})
    graph = quick(team(model, worker(fails), limits=Limits(max_stalls=1)))
    state = run_sync(graph, {"plan": "- [ ] 1. Try @a (retries 1000000; timeout 1s)\n"}).state
    assert tries == list(range(1, MOST_RETRIES + 2))
    assert state["outcome"] == "failed"


def test_a_host_that_never_answers_is_given_up():
    script = {"feedback": always(Hang()), "final_answer": always(Hang())}
    model = ScriptedModel(script)
    limits = Limits(step_timeout=0.05, max_stalls=1)
    config = team(model, worker(lambda context: "A fact."), limits=limits)
    state = run_sync(quick(config), {"plan": "- [ ] 1. Find it @a\n"}).state
    assert (state["outcome"], state["limit_reached"]) == ("partial", "no_answer")
    assert "A fact." in state["final_answer"].text
    assert len(model.calls) == 2 * 3


def test_a_host_that_cannot_even_think_is_an_error_before_anything_was_done():
    model = ScriptedModel({"think": always(Hang())})
    config = team(model, worker(lambda context: "x"), limits=Limits(step_timeout=0.05))
    with pytest.raises(ModelCallError, match="TimeoutError"):
        run_sync(quick(config), "Do it.")


def test_a_run_with_too_few_calls_to_think_answers_all_the_same():
    model = ScriptedModel({"think": [""]})
    config = team(model, worker(lambda context: "x"), limits=Limits(max_model_calls=1))
    state = run_sync(quick(config), "Do it.").state
    assert state["outcome"] == "failed"
    assert "max_model_calls" in state["final_answer"].text


async def test_a_run_whose_rounds_are_spent_only_waits_for_its_answers():
    revisions = always("---\nverdict: continue\nupdate: Another.\n---\n- [ ] 3. Another @b\n")
    model = ScriptedModel({"feedback": revisions, "final_answer": always("Two were done.")})
    specialists = [
        worker(lambda context: ask_user("Which?"), "a"),
        worker(lambda context: SpecialistResult(result=AIMessage("x"), replan_needed=True), "b"),
    ]
    config = team(model, *specialists, limits=Limits(max_rounds=1, max_stalls=3))
    graph = quick(config, checkpointer=InMemorySaver())
    plan = "- [ ] 1. Ask @a\n- [ ] 2. Do @b\n"
    waiting = (await run(graph, {"plan": plan}, config=THREAD)).state
    assert waiting["outcome"] == "waiting"
    assert waiting["current_plan"].version == 1
    state = (await run(graph, Command(resume="That one."), config=THREAD)).state
    assert state["current_plan"].step(1).result == "That one."
    assert (state["current_round"], state["max_rounds"]) == (2, 2)
    # The host wanted another round.
    assert (state["outcome"], state["limit_reached"]) == ("partial", "max_rounds")
