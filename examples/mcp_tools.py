"""A specialist with the tools of an MCP server, one of which a person must approve.

    python examples/mcp_tools.py
    python examples/mcp_tools.py --model openai:NAME --base-url http://127.0.0.1:8000/v1

The server is `examples/teams/shop_server.py`; it is started when the first step needs it, and ends
with the run. Without `--model` or REPLAN_MODEL=openai:NAME the model is a `ScriptedModel` that
plays the script below: the tools are really called, but what the model says is written down here.
It needs the extra `mcp`.
"""

import argparse
import asyncio
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from langchain_core.messages import AIMessage

from replan import Host, Specialist, Team, ToolServer, build_graph, open_runtime, open_storage
from replan.testing import ScriptedModel

SERVER = Path(__file__).parent / "teams" / "shop_server.py"


def calling(tool: str, /, **arguments: object) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": tool, "args": arguments, "id": tool}])


SCRIPT = {
    "think": "---\ncomplexity: complex\n---\n- [ ] 1. See that there are 50 pencils @buyer\n",
    "step 1": [
        calling("shop__stock", article="pencils"),
        calling("shop__order", article="pencils", amount=470),
        "There were 3 pencils, and 47 are ordered.",
    ],
    "feedback": "---\nverdict: complete\n---\nThe pencils are on their way.",
}

arguments = argparse.ArgumentParser()
arguments.add_argument("--model", default=os.environ.get("REPLAN_MODEL"))
arguments.add_argument("--base-url")
given = arguments.parse_args()
model = given.model or ScriptedModel(SCRIPT)

# This server's declarations of its tools count: `stock` only reads.
shop = ToolServer(command=sys.executable, args=[str(SERVER)], trusted=True)
buyer = Specialist(
    name="buyer",
    intended_use="Knows the stock, and orders.",
    chat_model=model,
    tools=["shop/*"],
    approve=["shop/order"],
)
team = Team(Host(model), [buyer], tool_servers={"shop": shop})


async def main() -> None:
    with TemporaryDirectory() as folder:
        async with open_storage(Path(folder) / "runs.db") as storage:
            graph = build_graph(team, storage=storage, base_url=given.base_url)
            async with open_runtime(graph, storage=storage) as runtime:
                run = await runtime.start("See that there are 50 pencils.")
                result = await run.result()
                while result.pending_questions:
                    (asked,) = result.pending_questions
                    details = cast("dict[str, Any]", asked.details)
                    print(asked.text, details["arguments"])
                    # Here a person would be asked.
                    order = {"article": "pencils", "amount": 47}
                    answer = {asked.key: {"action": "edit", "arguments": order}}
                    result = await (await runtime.answer(run.run_id, answer)).result()
    print(result.document)
    print(result.text)


asyncio.run(main())
