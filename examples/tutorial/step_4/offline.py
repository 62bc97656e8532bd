"""The model: that of REPLAN_MODEL, or else a script that plays a model."""

import os

from replan.testing import ScriptedModel

SCRIPT = {
    "think": """\
---
complexity: complex
reasoning: Lamps are counted before they are ordered.
---
- [ ] 1. Count the desk lamp @stock
- [ ] 2. Order desk lamps @order (after 1)
""",
    "feedback": "---\nverdict: complete\n---\nTen desk lamps are on their way.",
}


def model() -> "str | ScriptedModel":
    """The name of a model, or the script."""
    return os.environ.get("REPLAN_MODEL") or ScriptedModel(SCRIPT)
