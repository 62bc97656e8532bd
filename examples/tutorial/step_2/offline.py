"""The model: that of REPLAN_MODEL, or else a script that plays a model."""

import os

from langchain_core.messages import AIMessage

from replan.testing import ScriptedModel

WRONG = {"name": "price", "args": {"article": "lamp"}, "id": "1"}
RIGHT = {"name": "price", "args": {"article": "desk lamp"}, "id": "2"}
SCRIPT = {
    "think": """\
---
complexity: complex
---
- [ ] 1. Count the desk lamp @stock
- [ ] 2. Say what to order and what it costs @buyer (after 1)
""",
    "step 2": [
        AIMessage("", tool_calls=[WRONG]),
        AIMessage("", tool_calls=[RIGHT]),
        "Ten desk lamps, 315 euros.",
    ],
    "feedback": "---\nverdict: complete\n---\nOrder ten desk lamps for 315 euros.",
}


def model() -> "str | ScriptedModel":
    """The name of a model, or the script."""
    return os.environ.get("REPLAN_MODEL") or ScriptedModel(SCRIPT)
