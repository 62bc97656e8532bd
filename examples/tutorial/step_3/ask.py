"""Run a plan that a person wrote; the host revises it, because a step fails."""

from pathlib import Path

from offline import model
from shop import shop

from replan import run_sync

plan = (Path(__file__).parent / "plan.md").read_text("utf-8")
result = run_sync(shop(model()), {"plan": plan})
print(result.document.partition("<!--")[0].rstrip())
for update in result.state.get("plan_history", []):
    print(f"version {update.version}, by {update.by}: {update.description}")
print("---", *result.warnings)
print(result.text)
