"""How fast the pages of `replan ui` are: a run of 500 steps, one that goes on, 10,000 runs.

    python benchmarks/page.py [--runs 10000] [--seconds 60] [--chromium PATH] [--out page.json]

A headless Chromium opens the pages of a server in a
process of its own. A view counts until its last element is on the screen. While a run goes on, 50
events are appended to it every second, and the lag is that of the newest step which the page shows.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from playwright.async_api import Page, async_playwright

from replan import Host, Specialist, Team, open_runtime, open_storage
from replan.ports.run_book import RunRecord
from replan.ports.storage import Storage
from replan.testing import ScriptedModel, always

TOKEN = "the-token-of-the-benchmark"  # noqa: S105 - of a server on loopback
STEPS, RATE, TRIES = 500, 50, 5
OUTCOMES = ("completed", "failed", "answered", "interrupted")
SERVER = """
import asyncio, sys
from replan import Host, Specialist, Team, open_storage
from replan.testing import ScriptedModel
from replan.ui.served_pages import open_pages
async def serve():
    team = Team(host=Host(model=ScriptedModel({})), specialists=[
        Specialist(name="worker", intended_use="Works.", run=lambda _: "", effects="pure")])
    async with open_storage(sys.argv[1]) as storage:
        async with open_pages({"house": team}, storage, sys.argv[2]) as address:
            print(address.partition("enter")[0], flush=True)
            await asyncio.Event().wait()
asyncio.run(serve())
"""


def plan() -> str:
    """A plan of many steps, each behind two others."""
    lines = ["# A long piece of work", ""]
    for step in range(1, STEPS + 1):
        after = f" (after {step - 7}, {step - 6})" if step > 7 else ""  # noqa: PLR2004
        lines.append(f"- [ ] {step}. Do part {step} of this long piece of work @worker{after}")
    return "\n".join([*lines, ""])


async def filled(where: Path, runs: int) -> None:
    """Make a run of 500 steps that is over, and many records of runs."""
    end = "---\nverdict: complete\n---\nAll is done."
    team = Team(
        host=Host(model=ScriptedModel({"feedback": always(end)})),
        specialists=[
            Specialist(name="worker", intended_use="Works.", run=lambda _: "done", effects="pure")
        ],
    )
    given = {"messages": [("user", "Do it all")], "plan": plan()}
    async with open_storage(where) as storage:
        async with open_runtime(team, storage=storage) as runtime:
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
    ticks = os.sysconf("SC_CLK_TCK")
    parents = dict[int, tuple[int, float]]()
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                fields = (each / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended
            parents[int(each.name)] = (int(fields[1]), sum(map(int, fields[11:13])) / ticks)
    own = {process}
    while more := {pid for pid, (parent, _) in parents.items() if parent in own} - own:
        own |= more
    return sum(parents[pid][1] for pid in own if pid in parents)


async def followed(page: Page, where: Path, address: str, seconds: float, server: int) -> dict:
    """Append events to a run that goes on, and see how far behind the page is."""
    end = asyncio.Event()

    async def work(_: object) -> str:
        await end.wait()
        return "done"

    team = Team(
        host=Host(model=ScriptedModel({"feedback": always("---\nverdict: complete\n---\nEnd.")})),
        specialists=[Specialist(name="worker", intended_use="W.", run=work, effects="pure")],
    )
    given = {"messages": [("user", "Go on")], "plan": plan()}
    async with open_storage(where) as storage, open_runtime(team, storage=storage) as runtime:
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
    return {
        "events_per_second": number / took,
        "lag_median_s": statistics.median(lags),
        "lag_worst_s": max(lags),
        "server_cpu_percent": of_server / took * 100,
        "browser_cpu_percent": (of_all - of_server - own) / took * 100,
    }


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


async def measured(arguments: argparse.Namespace) -> dict:
    """Measure all on one server."""
    where = Path(tempfile.mkdtemp()) / "runs.db"
    await filled(where, arguments.runs)
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVER, str(where), TOKEN, stdout=asyncio.subprocess.PIPE
    )
    named = arguments.chromium or shutil.which("chromium") or shutil.which("google-chrome")
    try:
        told = await server.stdout.readline() if server.stdout else b""
        address = told.decode().strip()
        async with async_playwright() as playwright:
            chromium = await playwright.chromium.launch(
                executable_path=named, args=["--no-sandbox"]
            )
            headers = {"Authorization": f"Bearer {TOKEN}"}
            page = await chromium.new_page(extra_http_headers=headers)
            views = {
                "run_of_500_steps_plan_ms": (f"{address}runs/big", "#n500"),
                "run_of_500_steps_timeline_ms": (f"{address}runs/big?tab=timeline", ".legend"),
                "run_of_500_steps_steps_ms": (f"{address}runs/big?tab=steps", "#s500"),
                "list_of_runs_ms": (address, "#more"),
            }
            found = {"load_average": os.getloadavg(), "runs": arguments.runs}
            for name, (where_to, last) in views.items():
                tries = [await view(page, where_to, last) for _ in range(TRIES)]
                found[name] = {"median": statistics.median(tries), "worst": max(tries)}
                print(name, found[name], flush=True)
            found["live"] = await followed(page, where, address, arguments.seconds, server.pid)
            await chromium.close()
            return found
    finally:
        server.terminate()
        await server.wait()


def main() -> None:
    """Measure, print, and keep it if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--chromium", help="the browser, if not the one on the path")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    found = asyncio.run(measured(arguments))
    print(json.dumps(found, indent=2))
    if arguments.out:
        arguments.out.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
