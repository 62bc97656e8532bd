"""How fast the pages of `replan ui` are: a run of 500 steps, one that goes on, 10,000 runs.

A headless Chromium opens the pages of a server in a process of its own. A view counts until its
last element is on the screen. While a run goes on, 50 events are appended to it every second, and
the lag is that of the newest step which the page shows.
"""

import asyncio
import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from harness import Row, judged, options, publish, serving
from playwright.async_api import Page, async_playwright

from replan import Host, Limits, Specialist, Team, open_runtime, open_storage
from replan.cli.page.served_pages import open_pages
from replan.ports.run_book import RunRecord
from replan.ports.storage import Storage
from replan.testing import ScriptedModel, always

TOKEN = "the-token-of-the-benchmark"  # noqa: S105 - of a server on loopback
STEPS, RATE, TRIES = 500, 50, 5
OUTCOMES = ("completed", "failed", "answered", "interrupted")
MOST_PLAN, MOST_LIST, MOST_BEHIND = 1_000, 300, 1
_TICKS = os.sysconf("SC_CLK_TCK")


def plan() -> str:
    """A plan of many steps, each behind two others."""
    lines = ["# A long piece of work", ""]
    for step in range(1, STEPS + 1):
        after = f" (after {step - 7}, {step - 6})" if step > 7 else ""  # noqa: PLR2004
        lines.append(f"- [ ] {step}. Do part {step} of this long piece of work @worker{after}")
    return "\n".join([*lines, ""])


def team(work: Any) -> Team:
    """A team of one worker."""
    model = ScriptedModel({"feedback": always("---\nverdict: complete\n---\nAll is done.")})
    worker = Specialist(name="worker", intended_use="Works.", run=work, effects="pure")
    return Team(host=Host(model=model), specialists=[worker], limits=Limits(max_steps=STEPS))


async def filled(where: str, runs: int) -> None:
    """Make a run of 500 steps that is over, and many records of runs."""
    given = {"messages": [("user", "Do it all")], "plan": plan()}
    async with open_storage(where) as storage:
        async with open_runtime(team(lambda _: "done"), storage=storage) as runtime:
            await (await runtime.start(given, run_id="big"))
        began = datetime(2026, 1, 1, tzinfo=UTC)
        for number in range(runs):
            at = began + timedelta(minutes=number)
            record = RunRecord(
                run_id=f"{number:06d}",
                thread_id=f"t{number}",
                title=f"Order {number}",
                outcome=OUTCOMES[number % len(OUTCOMES)],
                started_at=at,
                updated_at=at,
                labels={"customer": str(number % 50)},
            )
            await storage.runs.begin(record)


async def view(page: Page, address: str, last: str) -> float:
    """Milliseconds from the navigation until an element is painted."""
    await page.goto(address, wait_until="commit")
    await page.wait_for_selector(last)
    return await page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame("
        "() => done(performance.now()))))"
    )


def cpu_of(process: int) -> float:
    """Seconds of processor that a process and those below it have had."""
    parents = dict[int, tuple[int, float]]()
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                fields = (each / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended
            parents[int(each.name)] = (int(fields[1]), sum(map(int, fields[11:13])) / _TICKS)
    own = {process}
    while more := {pid for pid, (parent, _) in parents.items() if parent in own} - own:
        own |= more
    return sum(parents[pid][1] for pid in own if pid in parents)


async def followed(page: Page, where: str, address: str, seconds: float, server: int) -> list[Row]:
    """Append events to a run that goes on, and see how far behind the page is."""
    end = asyncio.Event()

    async def work(_: object) -> str:
        await end.wait()
        return "done"

    given = {"messages": [("user", "Go on")], "plan": plan()}
    async with open_storage(where) as storage, open_runtime(team(work), storage=storage) as runtime:
        run = await runtime.start(given, labels={"team": "house"})
        await page.goto(f"{address}runs/{run.run_id}?tab=steps")
        await page.wait_for_selector("#s500")
        began, own = time.monotonic(), time.process_time()
        of_server, of_all = cpu_of(server), cpu_of(os.getpid())
        lags, number = await lagged(page, storage, run.run_id, seconds)
        took, own = time.monotonic() - began, time.process_time() - own
        of_server, of_all = cpu_of(server) - of_server, cpu_of(os.getpid()) - of_all
        end.set()
        await runtime.stop(run.run_id)
    behind = judged(max(lags), name="worst", most=MOST_BEHIND)
    return [
        {
            "table": "A page that follows its run",
            "events a second": number / took,
            "behind the newest event, median, s": statistics.median(lags),
            **behind,
            "CPU of the server, %": 100 * of_server / took,
            "CPU of the browser, %": 100 * (of_all - of_server - own) / took,
        }
    ]


async def lagged(
    page: Page, storage: Storage, run_id: str, seconds: float
) -> tuple[list[float], int]:
    """Append events, and give how far behind the page was from time to time, and their number."""
    lags, sent, began, number = list[float](), [time.monotonic()], time.monotonic(), 0
    while time.monotonic() - began < seconds:
        step = number % STEPS + 1
        at = datetime.now(UTC).isoformat()  # noqa: TID251 - a benchmark has a clock
        event = {"type": "model_completed", "at": at, "round": 1, "call": f"c{number}", "node": "x"}
        event |= {"step_id": step, "specialist": "worker", "attempt": 1, "model": "m"}
        event |= {"seconds": 0.1, "input_tokens": 10, "output_tokens": 1}
        await storage.log.add_events(run_id, [event])
        number += 1
        sent.append(time.monotonic())
        if number % (RATE // 2) == 0:
            shown = re.search(r"(\d+) model call", await page.inner_text("#head .figures"))
            known = int(shown[1]) if shown else 0
            # The oldest event that the page does not show yet.
            lags.append(time.monotonic() - sent[min(known + 1, number)])
        await asyncio.sleep(max(0, began + number / RATE - time.monotonic()))
    return lags, number


async def serve(where: str) -> None:
    """Serve the pages of a storage, and say where, and in which process."""
    async with (
        open_storage(where) as storage,
        open_pages({"house": team(lambda _: "")}, storage, TOKEN) as address,
    ):
        print(address.partition("enter")[0], os.getpid(), flush=True)
        await asyncio.to_thread(sys.stdin.read)


def arguments() -> ArgumentParser:
    """The options of this benchmark."""
    parser = options(__doc__ or "")
    parser.add_argument("--runs", type=int, default=10_000, help="runs in the list")
    parser.add_argument("--seconds", type=float, default=60, help="how long a run is followed")
    parser.add_argument("--chromium", help="the browser, if not the one on the path")
    return parser


def main(args: Namespace) -> list[Row]:
    """Measure all on one server."""
    with tempfile.TemporaryDirectory() as folder:
        where = str(Path(folder) / "runs.db")
        asyncio.run(filled(where, args.runs))
        with serving(__file__, where) as told:
            address, server = told.split()
            return asyncio.run(_rows(args, where, address, int(server)))


async def _rows(args: Namespace, where: str, address: str, server: int) -> list[Row]:
    named = args.chromium or shutil.which("chromium") or shutil.which("google-chrome")
    views = {
        "500 steps: plan": (f"{address}runs/big", "#n500", MOST_PLAN),
        "500 steps: timeline": (f"{address}runs/big?tab=timeline", ".legend", None),
        "500 steps: steps": (f"{address}runs/big?tab=steps", "#s500", None),
        f"list of {args.runs:,} runs: first rows": (address, "#more", MOST_LIST),
    }
    rows: list[Row] = []
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=named, args=["--no-sandbox"])
        page = await chromium.new_page(extra_http_headers={"Authorization": f"Bearer {TOKEN}"})
        for name, (place, last, most) in views.items():
            tries = [await view(page, place, last) for _ in range(TRIES)]
            told = judged(statistics.median(tries), name="median, ms", most=most)
            rows.append({"table": "First views", "view": name, "worst": max(tries), **told})
        rows += await followed(page, where, address, args.seconds, server)
        await chromium.close()
    return rows


if __name__ == "__main__":
    if Path(sys.argv[-1]).suffix == ".db":
        asyncio.run(serve(sys.argv[-1]))
    else:
        publish("page", arguments().parse_args(), main)
