"""A program that publishes a listing once, or goes on with that: for tests that kill it meanwhile.

The job, its REST service and its catalogue are those of `examples/product_listings`. A job is an
agent with its session in a storage, a specialist of a plan, or a pure function with a log whose
client keeps the metadata in a file.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langgraph.types import Command

from replan import Host, Specialist, Team, build_graph, open_storage, run, waiting_for
from replan.jobs import job_agent, job_processor, read_job_file
from replan.jobs.flow import run_flow
from replan.sessions import ClientAgentAdapter
from replan.testing import ScriptedModel, always

EXAMPLE = Path(__file__).parents[1] / "examples/product_listings"
PLAN = """\
- [ ] 1. Go to the shop @shop

  ```yaml
  command: publish
  product_center_id: PC-100
  ```
"""
COMPLETE = "---\nverdict: complete\n---\nPublished."


@dataclass(frozen=True)
class Errand:
    """Where a process works, in what form, and for whom."""

    where: str
    url: str
    folder: str
    form: str
    name: str

    @property
    def spec(self) -> Any:
        """The job."""
        return read_job_file(EXAMPLE / "listings.yaml").replace(base_urls=[self.url])


def work(errand: Errand) -> None:
    """Do what is left of a job; the exit code is 0 if it is completed."""
    sys.path.insert(0, str(EXAMPLE))

    async def worked() -> str:
        async with open_storage(errand.where) as storage:
            return await FORMS[errand.form](errand, storage)

    if (outcome := asyncio.run(worked())) != "completed":
        sys.exit(f"{errand.name}: {outcome}")


async def _agent(errand: Errand, storage: Any) -> str:
    """Say it in a turn with a name, as a queue would."""
    client = ClientAgentAdapter(storage, job_agent(errand.spec))
    result = await client.process(errand.name, "publish PC-100", turn_id="message-0")
    return str(result.metadata.get("outcome") or result.error)


async def _plan(errand: Errand, storage: Any) -> str:
    """Start the run, or resume it; answer what it asks."""
    model = ScriptedModel({"feedback": always(COMPLETE)})
    shop = Specialist("shop", "Publishes.", job=errand.spec)
    graph = build_graph(Team(host=Host(model=model), specialists=[shop]), storage=storage)
    config: Any = {"configurable": {"thread_id": errand.name}}
    known = await graph.aget_state(config)
    given: Any = None if known.values else {"messages": [("user", "Go.")], "plan": PLAN}
    state = (await run(graph, given, config=config, run_id=errand.name)).state
    while asked := waiting_for(state):
        given = Command(resume={question.key: "PC-100" for question in asked})
        state = (await run(graph, given, config=config, run_id=errand.name)).state
    return str(state.get("outcome"))


async def _flow(errand: Errand, storage: Any) -> str:
    """Hand in the metadata of the turn before, which the client has in a file."""
    processor = job_processor(errand.spec, log=storage.log)
    metadata: dict[str, Any] = {}
    for number, said in enumerate(("", "publish PC-100")):
        kept = Path(errand.folder, f"{errand.name}-{number}.json")
        if (known := _read(kept)) is None:
            output = await run_flow(processor, metadata, [{"role": "user", "content": said}])
            known = _written(output.metadata.to_dict(), kept)
        metadata = known
    return processor.read(metadata["context"]["job"]).status


def _read(kept: Path) -> dict[str, Any] | None:
    return json.loads(kept.read_text()) if kept.exists() else None


def _written(metadata: dict[str, Any], kept: Path) -> dict[str, Any]:
    new = kept.with_suffix(".new")
    new.write_text(json.dumps(metadata))
    new.rename(kept)
    return metadata


FORMS: dict[str, Callable[[Errand, Any], Awaitable[str]]] = {
    "agent": _agent,
    "plan": _plan,
    "flow": _flow,
}
