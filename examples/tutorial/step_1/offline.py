"""The model: that of REPLAN_MODEL, or else a script that plays a model."""

import os

from replan.testing import ScriptedModel

SCRIPT = {
    "think": """\
---
complexity: complex
---
# What to order

- [ ] 1. Count the desk lamp @stock
- [ ] 2. Count the floor lamp @stock
- [ ] 3. Say what to order @buyer (after 1, 2)
""",
    "step 3": "Order 10 desk lamps. Floor lamps are enough.",
    "feedback": "---\nverdict: complete\n---\nOrder 10 desk lamps: only 3 are left.",
}


def model() -> "str | ScriptedModel":
    """The name of a model, or the script."""
    return os.environ.get("REPLAN_MODEL") or ScriptedModel(SCRIPT)
