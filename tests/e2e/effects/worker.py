"""A process that does steps with effects outside, to be killed in the middle of them.

`python worker.py FILE ADDRESS PLAN ON_DOUBT [ANSWER]` runs the plan, or goes on with it if the file
knows it already, and prints a line of JSON at its end.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from contextlib import closing
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.types import Command

from replan import (
    ExecutionContext,
    Host,
    Specialist,
    Team,
    build_graph,
    open_storage,
    run,
    waiting_for,
)
from replan.testing import ScriptedModel, always

RUN = "run-1"


def main(file: str, address: str, plan: str, on_doubt: str, *answers: str) -> None:
    """Run or go on."""
    outcome = asyncio.run(_outcome(file, address, plan, on_doubt, answers))
    sys.stdout.write(f"{json.dumps(outcome)}\n")


async def _outcome(
    file: str, address: str, plan: str, on_doubt: Any, answers: tuple[str, ...]
) -> dict[str, Any]:
    config: Any = {"configurable": {"thread_id": "t"}}
    async with open_storage(file) as storage:
        graph = build_graph(_team(address, on_doubt), storage=storage)
        given: Any = {"messages": [("user", "Go.")], "plan": plan}
        before = await graph.aget_state(config)
        if before.values:
            given = Command(resume={before.interrupts[0].id: answers[0]}) if answers else None
        state = (await run(graph, given, config=config, run_id=RUN)).state
        results = state.get("current_specialist_results", {}).values()
        ledger = await storage.log.ledger(RUN)
        return {
            "outcome": state["outcome"],
            "texts": {result.key: result.text or result.error for result in results},
            "questions": [question.text for question in waiting_for(state)],
            "ledger": [[entry.step_id, entry.number, entry.outcome] for entry in ledger],
        }


def _team(address: str, on_doubt: Any) -> Team:
    def tell(path: str, key: str = "") -> str:
        connection = HTTPConnection(urlsplit(address).netloc, timeout=60)
        with closing(connection):
            connection.request("POST", f"/{path}?key={key}")
            return f"{path} {json.load(connection.getresponse())['receipt']}"

    def keyed(context: ExecutionContext, idempotency_key: str) -> str:
        tell(f"before-{context.plan_step.id}")
        text = tell(f"step-{context.plan_step.id}", idempotency_key)
        tell(f"after-{context.plan_step.id}")
        return text

    def unsafe(messages: list[BaseMessage]) -> str:
        tell("before-unsafe")
        text = tell("unsafe")
        tell("after-unsafe")
        return text

    def charge(amount: int, idempotency_key: str) -> str:
        """Charge an amount."""
        return tell(f"charge-{amount}", idempotency_key)

    def mail(to: str) -> str:
        """Send a mail."""
        tell(f"before-mail-{to}")
        text = tell(f"mail-{to}")
        tell(f"after-mail-{to}")
        return text

    def look() -> str:
        """Look."""
        return tell("look")

    reading = StructuredTool.from_function(look, metadata={"effects": "pure"})

    async def next_reply(messages: Sequence[BaseMessage]) -> AIMessage | str:
        await asyncio.to_thread(tell, "model")
        return _next_reply(messages)

    ends = "---\nverdict: complete\n---\nThe end."
    model = ScriptedModel({"specialist": [always(next_reply)], "feedback": [always(ends)]})
    return Team(
        host=Host(model=model),
        specialists=[
            Specialist(name="keyed", intended_use="Works.", run=keyed),
            Specialist(name="unsafe", intended_use="Works.", invokable=unsafe),
            Specialist(
                name="agent",
                intended_use="Works.",
                chat_model=model,
                tools=[charge, mail, reading],
            ),
        ],
        on_doubt=on_doubt,
    )


def _next_reply(messages: Sequence[BaseMessage]) -> AIMessage | str:
    """Charge and look at once, then send a mail, then answer with what the tools said."""
    heard = [message.text for message in messages if isinstance(message, ToolMessage)]
    if not heard:
        return _calling(("charge", {"amount": 5}), ("look", {}))
    if len(heard) == 2:
        return _calling(("mail", {"to": "Ann"}))
    return "; ".join(heard)


def _calling(*calls: tuple[str, dict[str, Any]]) -> AIMessage:
    made = [
        {"name": name, "args": args, "id": f"c{place}", "type": "tool_call"}
        for place, (name, args) in enumerate(calls)
    ]
    return AIMessage("", tool_calls=made)


if __name__ == "__main__":
    main(*sys.argv[1:])
