"""A run that a limit ends: it answers with its results, and is stored."""

from offline import model
from shop import shop

from replan import Limits, RunSettings, open_runtime

PLAN = """\
- [ ] 1. Count the desk lamp @stock
- [ ] 2. Say how many desk lamps to order @buyer (after 1)
- [ ] 3. Say how many floor lamps to order @buyer (after 2)
"""
tight = RunSettings(limits=Limits(max_model_calls=2), approval="never", user="anna")

with open_runtime(shop(model()), storage="shop.db") as runtime:
    result = runtime.run({"plan": PLAN}, run_id="spring", settings=tight)
print(result.text)
print(result.outcome, result.limit_reached, result.usage.calls)
