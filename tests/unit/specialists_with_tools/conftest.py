"""One step at one specialist, in the whole graph, on a scripted model."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from replan import Host, Specialist, Team, build_graph
from replan.testing import always

PLAN = "---\ncomplexity: complex\n---\n- [ ] 1. Do it @worker (retries 0)"
DONE = "---\nverdict: complete\n---\nThe end."


@pytest.fixture
def call() -> Callable[..., AIMessage]:
    """A reply of a model that calls tools: `call(("add", {"a": 1}), said="Let me see.")`."""

    def make(*calls: tuple[str, dict[str, Any]], said: str = "") -> AIMessage:
        return AIMessage(
            said,
            tool_calls=[
                {"name": name, "args": args, "id": f"call-{index}", "type": "tool_call"}
                for index, (name, args) in enumerate(calls)
            ],
        )

    return make


@pytest.fixture
def script() -> Callable[..., dict[str, Any]]:
    """A run of one step whose specialist gives these replies."""

    def make(*replies: Any) -> dict[str, Any]:
        return {"think": PLAN, "step 1": list(replies), "feedback": [always(DONE)]}

    return make


@pytest.fixture
def graph() -> Callable[..., Any]:
    """The graph of one worker; without a way to work of its own it asks the host's model."""

    def build(model: Any, *, checkpointer: Any = None, limits: Any = None, **worker: Any) -> Any:
        if not {"run", "invokable", "streamable"} & set(worker):
            worker.setdefault("chat_model", model)
        config = Team(
            host=Host(model=model),
            specialists=[Specialist(name="worker", intended_use="Works.", **worker)],
            **({} if limits is None else {"limits": limits}),
        )
        return build_graph(config, checkpointer=checkpointer)

    return build


@pytest.fixture
def result_of() -> Callable[[Any], Any]:
    """The result of the one step."""
    return lambda state: state["current_specialist_results"]["1/worker"]
