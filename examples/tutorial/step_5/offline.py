"""The model: that of REPLAN_MODEL, or else a script that plays a model."""

import os

from langchain_core.messages import AIMessage

from replan.testing import ScriptedModel

FACT = {"name": "remember", "args": {"text": "Anna's budget is 400 euros a month."}, "id": "1"}
SCRIPT = {
    "think": [
        "---\ncomplexity: simple\n---\n",
        "---\ncomplexity: complex\n---\n- [ ] 1. In which boxes do desk lamps come? @buyer\n",
    ],
    "direct_answer": [AIMessage("", tool_calls=[FACT]), "Noted."],
    "step 1": "In boxes of ten. [[suppliers.md:3]]",
    "feedback": "---\nverdict: complete\n---\n"
    "They come in boxes of ten [[suppliers.md:3]]; one fits your budget.",
}


def model() -> "str | ScriptedModel":
    """The name of a model, or the script."""
    return os.environ.get("REPLAN_MODEL") or ScriptedModel(SCRIPT)
