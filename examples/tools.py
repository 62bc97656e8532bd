"""A specialist with tools: a chat model that may call functions.

    python examples/tools.py

Without REPLAN_MODEL=openai:NAME the model is a `ScriptedModel` that plays the script below: the
tool is really called, but what the model says is written down here. Tools need the extra `tools`.
"""

import os

from langchain_core.messages import AIMessage

from replan import Host, Specialist, Team, build_graph, run_sync
from replan.testing import ScriptedModel

SCRIPT = {
    "think": "---\ncomplexity: complex\n---\n- [ ] 1. Tell the weather of Bonn @forecaster\n",
    "step 1": [
        AIMessage("", tool_calls=[{"name": "weather", "args": {"town": "Ulm"}, "id": "1"}]),
        AIMessage("", tool_calls=[{"name": "weather", "args": {"town": "Bonn"}, "id": "2"}]),
        "It rains in Bonn.",
    ],
    "feedback": "---\nverdict: complete\n---\nTake an umbrella: it rains in Bonn.",
}
WEATHER = {"Bonn": "rain", "Oslo": "snow"}


def weather(town: str) -> str:
    """Return the weather of a town."""
    print(f"the tool is asked for {town}")
    return WEATHER[town]  # an unknown town raises; the model is told and may try another


model = os.environ.get("REPLAN_MODEL") or ScriptedModel(SCRIPT)
forecaster = Specialist(
    name="forecaster",
    intended_use="Knows the weather of every town.",
    chat_model=model,
    tools=[weather],
    max_tool_rounds=5,
)
graph = build_graph(Team(host=Host(model=model), specialists=[forecaster]))
result = run_sync(graph, "Do I need an umbrella in Bonn?")
print(result.text)
print(f"model calls: {result.usage.calls}")
