"""Kill jobs in the middle of `publish`, at random moments, and count the listings that there are.

The job, its REST service and its catalogue are those of `examples/product_listings`. The service
is in this process, which nobody kills. The job is done in a process that gets SIGKILL: half of the
time at a moment after its request has arrived, else at any moment. The next process does the same
again, as its client would, until the job is done. A job is an agent with its session in a storage,
a specialist of a plan, or a pure function with a log whose client keeps the metadata in a file.

The action is keyed, as the service is; or it is declared unsafe, and the user confirms it once.
Then nobody may send a second request: where nobody knows what became of the first one, the user is
told.
"""

import asyncio
import json
import random
import sys
import tempfile
import threading
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from killing import killed_once
from reporting import Row, options, publish

EXAMPLE = Path(__file__).parents[1] / "examples/product_listings"
FORMS = ("agent", "plan", "flow")
TABLE = "Jobs that were killed while they publish"
EFFECTS = ("keyed", "unsafe")
PRELOADED = ("jobs_killed", "replan.assembly.jobs", "replan.jobs.flow")
IN_DOUBT = 3
"""The exit code of a process whose job is over, and nobody knows whether it published."""

COMPLETE = "---\nverdict: complete\n---\nPublished."
LONGEST = 60.0
"""Seconds after which a process that nobody kills counts as one that hangs."""

_AFTER_REQUEST = 0.02
_DOUBT = "Nobody knows whether it took effect"
_UNKNOWN = "I cannot see whether it was published"
_AT_WORK = 0.004


def arguments() -> ArgumentParser:
    """The options of this benchmark."""
    parser = options(__doc__ or "")
    parser.add_argument("--runs", type=int, help="runs of each form (default 5, long 100)")
    parser.add_argument("--kills", type=int, default=3, help="kills of one run at most")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first run")
    parser.add_argument("--longest", type=float, default=0.5, help="seconds before a kill, at most")
    parser.add_argument("--postgres", help="the DSN of a PostgreSQL; without it SQLite alone")
    return parser


def main(args: Namespace) -> list[Row]:
    """Kill jobs of each form on each store."""
    args.runs = args.runs or (100 if args.long else 5)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        stores = {"SQLite": f"sqlite:///{folder}/catalogue.db"}
        stores |= {"PostgreSQL": args.postgres} if args.postgres else {}
        for name, dsn in stores.items():
            where = args.postgres if name == "PostgreSQL" else f"{folder}/runs.db"
            with shop(dsn) as seen:
                for effects in EFFECTS:
                    blank = Errand(where, seen.url, folder, "", "", 0, effects)
                    rows += [_row(name, replace(blank, form=form), seen, args) for form in FORMS]
    return rows


def _row(name: str, blank: "Errand", seen: "Shop", args: Namespace) -> Row:
    total, form = Counter[str](), blank.form
    for seed in range(args.seed, args.seed + args.runs):
        # Another start of this benchmark on the same database has other names.
        own = f"{form}-{blank.effects}-{seed}-{time.time_ns()}"
        total += _killed(replace(blank, name=own, seed=seed), seen, args)
    ends = ("completed", "in doubt", "in doubt, none listed")
    counted = (*ends, "kills", "in the request", "requests", "listings", "wrong")
    about = {"table": TABLE, "store": name, "form": form, "effects": blank.effects}
    return {**about, "runs": args.runs, **{key: total[key] for key in counted}}


@dataclass(frozen=True)
class Errand:
    """What a process does: it publishes a product once, or goes on with that."""

    where: str
    url: str
    folder: str
    form: str
    name: str
    seed: int
    effects: str = "keyed"

    @property
    def in_one_message(self) -> bool:
        """Whether the user says all at once, or the product when it is asked for."""
        return self.seed % 2 == 0


@dataclass
class Shop:
    """The service, which notices when a request arrives."""

    url: str
    count: Callable[[], int]
    keys: list[str] = field(default_factory=list[str])
    arrived: threading.Event = field(default_factory=threading.Event)
    answered: threading.Event = field(default_factory=threading.Event)


@contextmanager
def shop(dsn: str) -> Iterator[Shop]:
    """Serve the catalogue of the example."""
    sys.path.insert(0, str(EXAMPLE))
    from catalogue import Catalogue  # noqa: PLC0415
    from service import served  # noqa: PLC0415

    class Watched(Catalogue):
        def done(self, method: str, path: list[str], given: dict[str, Any], key: str) -> Any:
            seen.keys.append(key)
            seen.arrived.set()
            time.sleep(_AT_WORK)
            answer = super().done(method, path, given, key)
            time.sleep(_AT_WORK)
            seen.answered.set()
            return answer

    catalogue = Watched(dsn)
    with served(catalogue, port=0) as url:
        seen = Shop(url, lambda: len(catalogue.listings()))
        yield seen
    catalogue.close()


def _killed(job: Errand, seen: Shop, args: Namespace) -> Counter[str]:
    """Do a job until it is done, and count what happened."""
    drawn = random.Random(job.seed)  # noqa: S311 - the same draw on every run, no secret
    found = Counter[str]()
    listings, requests = seen.count(), len(seen.keys)

    def moment(process: BaseProcess) -> None:
        if drawn.random() < 1 / 2:
            while process.is_alive() and not seen.arrived.wait(_AT_WORK):
                pass
            process.join(drawn.uniform(0, _AFTER_REQUEST))
        else:
            process.join(drawn.uniform(0, args.longest))

    for kill in range(args.kills + 1):
        seen.arrived.clear()
        seen.answered.clear()
        is_last = kill == args.kills
        wait = (lambda process: process.join(LONGEST)) if is_last else moment
        ended = killed_once(work, (job,), wait, PRELOADED)
        found["completed"] += ended == 0
        found["in doubt"] += ended == IN_DOUBT
        if ended in (0, IN_DOUBT):
            break
        found["kills"] += not is_last
        found["in the request"] += seen.arrived.is_set() and not seen.answered.is_set()
    found["requests"] = len(seen.keys) - requests
    found["listings"] = seen.count() - listings
    found["in doubt, none listed"] = found["in doubt"] * (not found["listings"])
    one_key = len({*seen.keys[requests:]}) <= 1
    found["wrong"] = int(_is_wrong(job, found) or not one_key)
    return found


def _is_wrong(job: Errand, found: Counter[str]) -> bool:
    """Whether it is not done, once; of an unsafe job, whether it asked twice, or lied."""
    if job.effects == "keyed":
        return not found["completed"] == found["listings"] == 1
    is_told = found["completed"] == found["listings"] == 1 or found["in doubt"] == 1
    return found["requests"] > 1 or not is_told


def work(job: Errand) -> None:
    """Do what is left of a job; the exit code is 0 if it is completed."""
    sys.path.insert(0, str(EXAMPLE))
    forms: dict[str, Callable[[Errand, Any], Awaitable[str]]]
    forms = {"agent": _agent, "plan": _plan, "flow": _flow}

    async def worked() -> str:
        from replan import open_storage  # noqa: PLC0415

        async with open_storage(job.where) as storage:
            return await forms[job.form](job, storage)

    if (outcome := asyncio.run(worked())) == "in doubt":
        sys.exit(IN_DOUBT)
    if outcome != "completed":
        sys.exit(f"{job.name}: {outcome}")


async def _agent(job: Errand, storage: Any) -> str:
    """Say what is not answered yet, each message in a turn with a name, as a queue would."""
    from replan.jobs import job_agent  # noqa: PLC0415
    from replan.sessions import ClientAgentAdapter  # noqa: PLC0415

    client = ClientAgentAdapter(storage, job_agent(_spec(job), log=storage.log))
    outcome = ""
    for number, said in enumerate(_messages(job)):
        result = await client.process(job.name, said, turn_id=f"message-{number}")
        outcome = result.metadata.get("outcome") or result.error
        if _DOUBT in result.response:
            return "in doubt"
    return str(outcome)


async def _plan(job: Errand, storage: Any) -> str:
    """Start the run, or resume it; answer what it asks."""
    from langgraph.types import Command  # noqa: PLC0415

    from replan import Host, Specialist, Team, build_graph, run, waiting_for  # noqa: PLC0415
    from replan.testing import ScriptedModel, always  # noqa: PLC0415

    model = ScriptedModel({"feedback": always(COMPLETE)})
    team = [Specialist("shop", "Publishes.", job=_spec(job))]
    graph = build_graph(Team(host=Host(model=model), specialists=team), storage=storage)
    config: Any = {"configurable": {"thread_id": job.name}}
    known = await graph.aget_state(config)
    given: Any = None if known.values else {"messages": [("user", "Go.")], "plan": _document(job)}
    state = (await run(graph, given, config=config, run_id=job.name)).state
    while asked := waiting_for(state):
        given = Command(resume={question.key: _answer(question) for question in asked})
        state = (await run(graph, given, config=config, run_id=job.name)).state
    results = state["current_specialist_results"].values()
    is_lost = any(_UNKNOWN in (result.error or "") for result in results)
    return "in doubt" if is_lost else str(state.get("outcome"))


def _answer(question: Any) -> str:
    if question.kind == "unknown_outcome":
        return f"fail: {_UNKNOWN}"
    return "yes" if question.text.startswith("Please confirm") else "PC-100"


async def _flow(job: Errand, storage: Any) -> str:
    """Hand in the metadata of the turn before, which the client has in a file."""
    from replan.jobs import job_processor  # noqa: PLC0415
    from replan.jobs.flow import run_flow  # noqa: PLC0415

    processor = job_processor(_spec(job), log=storage.log)
    metadata: dict[str, Any] = {}
    for number, said in enumerate(["", *_messages(job)]):
        kept = Path(job.folder, f"{job.name}-{number}.json")
        if (known := _read(kept)) is None:
            output = await run_flow(processor, metadata, [{"role": "user", "content": said}])
            known = _written(output.metadata.to_dict(), kept)
        metadata = known
        ended = processor.read(metadata["context"]["job"])
        if _DOUBT in ended.error:
            return "in doubt"
    return ended.status


def _read(kept: Path) -> dict[str, Any] | None:
    return json.loads(kept.read_text()) if kept.exists() else None


def _written(metadata: dict[str, Any], kept: Path) -> dict[str, Any]:
    new = kept.with_suffix(".new")
    new.write_text(json.dumps(metadata))
    new.rename(kept)
    return metadata


def _spec(job: Errand) -> Any:
    from replan.jobs import read_job_file  # noqa: PLC0415

    spec = read_job_file(EXAMPLE / "listings.yaml")
    commands = [
        each.replace(effects=job.effects) if each.name == "publish" else each
        for each in spec.commands
    ]
    return spec.replace(base_urls=[job.url], commands=commands)


def _messages(job: Errand) -> list[str]:
    said = ["publish PC-100"] if job.in_one_message else ["publish", "PC-100"]
    return said if job.effects == "keyed" else [*said, "yes"]


def _document(job: Errand) -> str:
    given = "\n  product_center_id: PC-100" if job.in_one_message else ""
    return f"- [ ] 1. Go to the shop @shop\n\n  ```yaml\n  command: publish{given}\n  ```\n"


if __name__ == "__main__":
    publish("Jobs that are killed", arguments().parse_args(), main)
