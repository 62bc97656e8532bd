"""A run that is killed, resumed, asked and revised, begun at a door of a server."""

import asyncio
import os

from ag_ui.core import Event, RunAgentInput
from langchain_core.messages import AIMessage
from pydantic import TypeAdapter

from replan.testing import Hang, Reply, Truncated
from served import served

CREW = """\
import os
import signal
import time
from pathlib import Path

from replan import ask_user

tries = []


def fetch(context):
    if context.plan_step.id == 1 and context.attempt == 1:
        raise ConnectionError("reset")
    return "fetched"


def price(of: str) -> str:
    \"\"\"Give the price of a thing.\"\"\"
    raise ValueError(f"no quote for {of}")


def guard(context):
    while not Path("again").exists():
        if Path("called").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.01)
    return "guarded"


def ask(context):
    return f"It is {ask_user('Which colour?')}."
"""
TEAM = """\
host: {model: m}
models: {m: {model: 'openai:m', base_url: URL, api_key_env: NO_KEY}}
prices: {m: {input: 3, output: 5}}
specialists:
  - {name: worker, intended_use: Works., run: 'crew_at_doors:fetch', effects: pure}
  - {name: buyer, intended_use: Buys., chat_model: m, tools: ['crew_at_doors:price'], effects: pure}
  - {name: guard, intended_use: Guards., run: 'crew_at_doors:guard', effects: pure}
  - {name: asker, intended_use: Asks., run: 'crew_at_doors:ask', effects: pure}
"""
PLAN = """\
- [ ] 1. Fetch @worker (retries 1)
- [ ] 2. Buy @buyer (after 1)
- [ ] 3. Guard @guard (after 1)
- [ ] 4. Ask @asker (after 2, 3)
"""
THINK = f"---\ncomplexity: complex\n---\n{PLAN}"
REVISED = PLAN.replace("[ ]", "[x]") + "- [ ] 5. Pack @worker (after 4)\n"
REVISE = f"---\nverdict: continue\nsuggested_action: update_plan\nupdate: Pack it.\n---\n{REVISED}"
END = "---\nverdict: complete\n---\nAll is done."


def script(folder):
    def hang(_):
        (folder / "called").touch()
        return Reply(fault=Hang())

    bought = [calling("price", of="gold"), hang, calling("price", of="gold"), "It is 42."]
    cut = Reply(END, fault=Truncated("cut"))
    return {"think": THINK, "step 2": bought, "feedback": [REVISE, cut, END]}


async def first_life(folder):
    async with served({"town": "town.yaml"}, folder / "runs.db") as client:
        await client.post("/ag-ui/town", json=asked("Buy gold."))


def live(folder):
    os.chdir(folder)
    asyncio.run(first_life(folder))


EVENT = TypeAdapter(Event)
OPENED = {"START": 1, "STARTED": 1, "END": -1, "FINISHED": -1}


def calling(name, **arguments):
    called = {"name": name, "args": arguments, "id": "c", "type": "tool_call"}
    return AIMessage("", tool_calls=[called])


def asked(*texts, thread="t1", **fields):
    """A request of a front end by AG-UI."""
    said = [{"id": str(n), "role": "user", "content": text} for n, text in enumerate(texts)]
    given = {"threadId": thread, "runId": "r1", "messages": said, **fields}
    return RunAgentInput.model_validate(given).model_dump(mode="json", by_alias=True)


async def events_of(client, body):
    """The events with which a request is answered."""
    async with client.stream("POST", "/ag-ui/town", json=body) as answer:
        lines = [line async for line in answer.aiter_lines() if line.startswith("data: ")]
    return [EVENT.validate_json(line.removeprefix("data: ")) for line in lines]


def state_of(events):
    """The state that a front end has after events."""
    state = {}
    for each in events:
        if each.type.value == "STATE_SNAPSHOT":
            state = each.snapshot
        elif each.type.value == "STATE_DELTA":
            for change in each.delta:
                state["steps"][int(change.path.split("/")[2])]["status"] = change.value
    return state


def check_events(lines):
    """The events of lines, once they are those of one run in the protocol's order."""
    events = [EVENT.validate_json(line) for line in lines]
    types = [each.type.value for each in events]
    assert types[0] == "RUN_STARTED"
    assert types[-1] in ("RUN_FINISHED", "RUN_ERROR")
    assert len([each for each in types if each.startswith("RUN_")]) == 2
    if types[-1] == "RUN_FINISHED":
        for kind in ("STEP", "TEXT_MESSAGE", "REASONING", "REASONING_MESSAGE", "TOOL_CALL"):
            ends = [each.removeprefix(f"{kind}_") for each in types if each.startswith(kind)]
            assert sum(OPENED.get(each, 0) for each in ends) == 0, (kind, types)
    return events
