"""Ask the shop's team, and show its plan and its answer."""

from offline import model
from shop import shop

from replan import run_sync

result = run_sync(shop(model()), "Which lamps do we have to order?")
print(result.document.partition("<!--")[0].rstrip())
print("---")
print(result.text)
print(result.outcome, "with", result.usage.calls, "model calls")
