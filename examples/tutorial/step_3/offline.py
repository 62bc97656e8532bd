"""The model: that of REPLAN_MODEL, or else a script that plays a model."""

import os

from replan.testing import ScriptedModel

REVISED = """\
---
verdict: continue
update: There is no bed lamp, so count floor lamps.
---
# The spring order

- [x] 1. Count the desk lamp @stock
- [ ] 3. Say what to order @buyer (after 1, 4)
- [ ] 4. Count the floor lamp @stock
"""
SCRIPT = {
    "feedback": [
        REVISED,
        "---\nverdict: complete\n---\nOrder ten desk lamps. The shop has no bed lamps.",
    ],
    "step 3": "Ten desk lamps.",
}


def model() -> "str | ScriptedModel":
    """The name of a model, or the script."""
    return os.environ.get("REPLAN_MODEL") or ScriptedModel(SCRIPT)
