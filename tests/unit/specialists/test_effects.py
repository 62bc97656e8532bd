"""What is known of effects before anything runs."""

import pytest
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph

from replan import Host, Specialist, Team
from replan.assembly import models_from_environment
from replan.assembly.team_services import services_of
from replan.base.user_code import call
from replan.specialists.effects import tool_effects
from replan.testing import ScriptedModel


def graph():
    inner = StateGraph(MessagesState).add_node("a", lambda state: {})
    return inner.add_edge(START, "a").compile()


def look() -> str:
    """Look."""
    return "seen"


MODEL = ScriptedModel([])


@pytest.mark.parametrize(
    ("worker", "effects"),
    [
        ({"chat_model": MODEL}, "pure"),
        ({"invokable": MODEL}, "pure"),
        ({"invokable": RunnableLambda(lambda messages: "a")}, "unsafe"),
        ({"run": lambda context: "a"}, "unsafe"),
        ({"run": lambda context, idempotency_key: "a"}, "keyed"),
        ({"invokable": graph()}, "unsafe"),
        ({"invokable": lambda messages, config: "a"}, "unsafe"),
        ({"invokable": lambda messages, config, idempotency_key: "a"}, "keyed"),
        ({"invokable": lambda messages: "a"}, "unsafe"),
        ({"streamable": lambda messages: iter("a")}, "unsafe"),
        # What its tools do is on record call by call, so the step itself may begin again.
        ({"chat_model": MODEL, "tools": [look]}, "pure"),
        ({"chat_model": MODEL, "tools": [look], "effects": "unsafe"}, "pure"),
        ({"chat_model": MODEL, "effects": "unsafe"}, "unsafe"),
        ({"run": lambda context: "a", "effects": "unsafe"}, "unsafe"),
        ({"invokable": lambda messages: "a", "effects": "pure"}, "pure"),
    ],
)
def test_the_effects_of_a_step_are_declared_or_follow_from_what_does_it(worker, effects):
    one = Specialist(name="a", intended_use="Works.", **worker)
    config = Team(host=Host(model=MODEL), specialists=[one])
    services = services_of(config, models_from_environment(environment={}))
    card = services.specialists["a"].card
    assert card.effects == effects
    assert card.is_declared == ("effects" in worker and "tools" not in worker)


def test_a_tool_says_its_effects_itself_or_is_told_them():
    @tool
    def pay(amount: int, idempotency_key: str) -> str:
        """Pay."""
        return "paid"

    reading = tool(look)
    assert tool_effects(reading, "unsafe") == "unsafe"
    assert tool_effects(reading, "pure") == "pure"
    assert tool_effects(pay, "unsafe") == "keyed"
    reading.metadata = {"effects": "keyed"}
    assert tool_effects(reading, "unsafe") == "keyed"
    # A name that the model made up calls nothing.
    assert tool_effects(None, "unsafe") == "pure"


async def test_a_function_is_handed_the_key_by_its_parameter():
    config = {"metadata": {"idempotency_key": "k"}}
    told = [
        await call(lambda given, idempotency_key: (given, idempotency_key), 1, config),
        await call(lambda given, *, idempotency_key: (given, idempotency_key), 1, config),
        await call(lambda given, config, idempotency_key: (given, idempotency_key), 1, config),
        await call(lambda given, size=3: (given, size), 1, config),
    ]
    assert told == [(1, "k"), (1, "k"), (1, "k"), (1, 3)]
