"""Another process raises the limit and continues; finished work is not repeated."""

from offline import model
from shop import shop

from replan import Limits, RunSettings, open_runtime

wider = RunSettings(limits=Limits(max_model_calls=10))

with open_runtime(shop(model()), storage="shop.db") as runtime:
    result = runtime.resume("spring", settings=wider)
print(result.text)
print(result.outcome, result.usage.calls)
