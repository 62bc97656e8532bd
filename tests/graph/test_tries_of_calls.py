"""A call of a model that fails has one set of tries, wherever it is made."""

from typing import Any

import pytest

import made_pipelines as pipelines
from replan import Host, Specialist, Team, run_sync
from replan.assembly.graphs import build_graph
from replan.errors import ReplanError
from replan.models.providers.chat_models import LangChainModels
from replan.pipelines.sub_threads.interaction_unit import InteractionUnit
from replan.pipelines.sub_threads.sub_thread_agent import SubThreadAgent
from replan.testing import HttpFault, Malformed, OpenAIServer, Raw, Reply, Reset

DONE = "---\nverdict: complete\n---\nIt rains."
PLAN = "---\ncomplexity: complex\n---\n- [ ] 1. Look @worker\n"

FAULTS = {
    "500": (HttpFault(500, retry_after=0.01), 3),
    "503": (HttpFault(503, retry_after=0.01), 3),
    "429 with a pause": (HttpFault(429, retry_after=0.01), 3),
    "a connection that breaks": (Reset(after=0), 3),
    "no JSON": (Malformed(), 3),
    "a stream that breaks off": (Reply("It rains.", fault=Reset(after=1)), 3),
    "no reply in it": (Raw({"id": "c"}), 3),
    "401": (HttpFault(401), 1),
    "402": (HttpFault(402), 1),
    "403": (HttpFault(403), 1),
    "a spent quota": (HttpFault(429, code="insufficient_quota"), 1),
}


class Unit(SubThreadAgent):
    """A pipeline of one unit, which asks its model."""

    async def _initialize_interaction_units(self) -> None:
        handler = pipelines.ModelHandler(phase="initial_phase")
        self.interaction_units = {
            handler.phase: await InteractionUnit.create(state_handler=handler)
        }


def weather(town: str) -> str:
    """Return the weather of a town."""
    return f"It rains in {town}."


WORKERS: dict[str, dict[str, Any]] = {
    "a chat model": {"chat_model": "odd"},
    "a loop of tools": {"chat_model": "odd", "tools": [weather]},
    "a pipeline": {"pipeline": pipelines.pipeline(Unit), "unit_model": "odd"},
}


HOST = ("think", "feedback", "final_answer")


class Hearing:
    """Who hears events makes the models stream."""

    def on_event(self, event: Any) -> None: ...


def failing_requests(
    answer: Any, *, at_host: bool = False, is_heard: bool = False, **worker: Any
) -> tuple[int, Any]:
    """How many requests got this answer at the host or at a step, and the result of the run."""
    failed = list[Any]()

    def reply(request: Any) -> Any:
        node = request.call.node
        if (node == "think") if at_host else node not in HOST:
            failed.append(request)
            return answer
        return PLAN if node == "think" else DONE

    with OpenAIServer(reply) as server:
        models = LangChainModels(base_url=server.base_url, environment={})
        worker = worker or {"run": lambda _: "x"}
        specialist = Specialist("worker", "Works.", **worker)
        team = Team(Host("odd"), [specialist], callbacks=[Hearing()] if is_heard else [])
        graph = build_graph(team, models=models)
        if not at_host:
            result = run_sync(graph, "Umbrella?")
            return len(failed), result
        with pytest.raises(ReplanError):
            run_sync(graph, "Umbrella?")
        return len(failed), None


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("is_heard", [False, True])
def test_a_failing_call_of_the_host_has_three_tries(fault: str, *, is_heard: bool) -> None:
    answer, tries = FAULTS[fault]
    made, _ = failing_requests(answer, at_host=True, is_heard=is_heard)
    assert made == tries


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    ("worker", "is_heard"), [*((name, False) for name in WORKERS), ("a chat model", True)]
)
def test_a_failing_call_of_a_step_has_three_tries_in_all_its_attempts(
    worker: str, fault: str, *, is_heard: bool
) -> None:
    answer, tries = FAULTS[fault]
    made, result = failing_requests(answer, is_heard=is_heard, **WORKERS[worker])
    assert (made, result.results[1].is_failed) == (tries, True)
