"""Your own prompts for the host and for a specialist.

    python examples/own_prompts.py

Without REPLAN_MODEL=openai:NAME the model is a `ScriptedModel` that plays the script below, so the
answers are written down here; what it is told is real, and shown at the end.
"""

import os

from replan import Host, Specialist, Team, build_graph, run_sync
from replan.testing import ScriptedModel

SCRIPT = {
    "think": "---\ncomplexity: complex\n---\n- [ ] 1. Describe the fjord @guide\n",
    "step 1": "A fjord is a valley that the sea has taken.",
    "feedback": "---\nverdict: complete\n---\nA valley that the sea has taken.",
}

HOUSE = "You work for a museum. Visitors are ten years old."
PLANNING = "Plan as few steps as will do."
JUDGING = "Be content with an answer that a child understands."
GUIDE = "You are a guide. One sentence, no foreign words."

model = os.environ.get("REPLAN_MODEL") or ScriptedModel(SCRIPT)
config = Team(
    host=Host(
        model=model,
        system_prompt=HOUSE,
        thinking_prompt=PLANNING,
        reflection_prompt=JUDGING,
    ),
    specialists=[
        Specialist(
            name="guide",
            intended_use="Explains things of the sea.",
            chat_model=model,
            system_prompt=GUIDE,
        )
    ],
)
result = run_sync(build_graph(config), "What is a fjord?")
print(result.text)

if isinstance(model, ScriptedModel):
    for call in model.calls:
        told = call.messages[0].text
        own = [each for each in (HOUSE, PLANNING, JUDGING, GUIDE) if each in told]
        print(f"{call.node}: {' '.join(own)}")
