"""The model: that of REPLAN_MODEL, or else a script that plays a model."""

import os

from replan.testing import Reply, ScriptedModel, always

SCRIPT = {
    "step 2": Reply("Ten desk lamps.", usage=(400, 20)),
    "step 3": Reply("Two floor lamps.", usage=(400, 20)),
    "feedback": always(Reply("---\nverdict: complete\n---\nThat is the order.", usage=(900, 30))),
}


def model() -> "str | ScriptedModel":
    """The name of a model, or the script."""
    return os.environ.get("REPLAN_MODEL") or ScriptedModel(SCRIPT)
