"""Answers from a folder: each step receives passages of the notes, and cites file and line.

    python examples/knowledge.py
    python examples/knowledge.py --model openai:NAME --base-url http://127.0.0.1:8000/v1

The plan's steps are questions about a shop that does not exist. The offline model quotes the
passages; a named model, also in REPLAN_MODEL, answers in its own words.
"""

import os
from argparse import ArgumentParser
from pathlib import Path

from replan import RAGOptions, Specialist, Team, build_graph, run_sync

PLAN = """\
# Questions of a customer

- [ ] 1. How fast are refunds paid? @adviser
- [ ] 2. Why were lamps damaged in March? @adviser
"""

parser = ArgumentParser(description="Ask a folder of notes.")
parser.add_argument("--model", default=os.environ.get("REPLAN_MODEL", "offline"))
parser.add_argument("--base-url", default=None)
parser.add_argument("--folder", default=str(Path(__file__).parent / "data" / "notes"))
asked = parser.parse_args()

team = Team(
    asked.model,
    [Specialist("adviser", "Answers questions about the shop.", chat_model=asked.model)],
    knowledge=asked.folder,
    rag=RAGOptions(top_k=1),
)
result = run_sync(build_graph(team, base_url=asked.base_url), {"plan": PLAN})
print(result.text)
for step in result.results.values():
    places = [f"{each.source}:{each.line}-{each.last_line}" for each in step.sources]
    print(f"step {step.step_id} was given {', '.join(places)}")
for warning in result.warnings:
    print(f"warning: {warning}")
