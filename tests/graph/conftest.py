"""A small team on a scripted model, for the tests of the whole host."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from replan import Host, Specialist, Team, build_graph
from replan.testing import ScriptedModel
from two_ways import OverHttp

PLAN = """\
---
complexity: complex
reasoning: It takes several steps.
next_action: create_plan
---
# Compare two policies

- [ ] 1. Find the EU policy @researcher
- [ ] 2. Find the US policy @researcher
- [ ] 3. Compare both @analyst (after 1, 2)
"""

DONE = """\
---
verdict: complete
feedback: Both were found and compared.
---
The final answer.
"""

STEPS = {"step 1": "The EU text.", "step 2": "The US text.", "step 3": "They differ."}


@pytest.fixture
def script() -> Mapping[str, Any]:
    """A run of three steps without a revision."""
    return {"think": PLAN, **STEPS, "feedback": DONE}


@pytest.fixture(params=[ScriptedModel, OverHttp], ids=["in process", "over HTTP"])
def on_script(request: pytest.FixtureRequest) -> Any:
    """Make a model that follows a script, in this process or over HTTP."""
    return request.param


@pytest.fixture
def team() -> Callable[..., Any]:
    """Build the graph of a researcher and an analyst on one scripted model."""

    def build(model: Any, *, host: Host | None = None, **options: Any) -> Any:
        model = getattr(model, "chat", model)
        checkpointer = options.pop("checkpointer", None)
        specialists = options.pop(
            "specialists",
            [
                Specialist(name="researcher", intended_use="Finds facts.", chat_model=model),
                Specialist(name="analyst", intended_use="Compares things.", chat_model=model),
            ],
        )
        config = Team(host=host or Host(model=model), specialists=specialists, **options)
        return build_graph(config, checkpointer=checkpointer)

    return build
