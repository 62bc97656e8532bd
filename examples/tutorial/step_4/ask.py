"""A run that waits twice: for the approval of its plan, then for an answer."""

from offline import model
from shop import shop

from replan import open_runtime

ANSWERS = {"plan": "approve", "question": "10"}

with open_runtime(shop(model()), storage=":memory:") as runtime:
    result = runtime.run("Order desk lamps.")
    while result.outcome == "waiting":
        for ask in result.pending_questions:
            print(f"{ask.kind} {ask.key}: {ask.text}")
        answers = {ask.key: ANSWERS[ask.kind] for ask in result.pending_questions}
        result = runtime.answer(result.run_id, answers, by="anna").result()
    print(result.outcome)
    print(result.text)
    for event in runtime.events(result.run_id):
        if event.type == "answer_received":
            print(event.by, event.action, event.key)
