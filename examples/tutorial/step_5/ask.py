"""Tell a fact in one conversation, and use it in another; an answer cites the notes."""

from offline import model
from shop import shop

from replan import RunSettings, open_runtime

ANNA = RunSettings(user="anna", approval="never")

with open_runtime(shop(model()), storage=":memory:") as runtime:
    print(runtime.run("My budget is 400 euros a month.", settings=ANNA).text)
    for fact in runtime.facts("anna"):
        print("known of anna:", fact.text)
    result = runtime.run("How do desk lamps come?", settings=ANNA)
    print(result.text)
