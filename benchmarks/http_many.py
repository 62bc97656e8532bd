"""Many runs in a process of their own, whose memory nothing else has touched before.

`together COUNT`: so many at the same time; how long all of them take, and by how much memory grows
at most. `finished COUNT`: so many, a few at a time and without latency; how much memory stays of
each. Reads its memory from `/proc`, so it needs Linux.
"""

import asyncio
import ctypes
import gc
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from http_runs import Begin, bare_run, replan_run, replans_model
from http_workloads import WORKLOADS

SIDES = {"LangGraph": bare_run, "Replan": replan_run}
OUR_CLIENT = "LangGraph with Replan's client"
ALL_SIDES = {**SIDES, OUR_CLIENT: partial(bare_run, model_of=replans_model)}

_FEW = 20
_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_CLEAR_PEAK = "5"


def many(side: str, kind: str, count: int, base_url: str) -> dict[str, float]:
    """Make the runs in a new process; gives what it measured."""
    command = [sys.executable, __file__, side, kind, str(count), base_url]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603 - this file
    return json.loads(done.stdout)


async def _together(begin: Begin, count: int) -> dict[str, float]:
    before = begin_anew()
    cpu, began = time.process_time(), time.perf_counter()
    ran = await asyncio.gather(*(begin() for _ in range(count)))
    took = time.perf_counter() - began
    return {
        "calls": sum(one.calls for one in ran) / (count * WORKLOADS["fan-out"].calls),
        "runs a second": count / took,
        "cpu of a run": (time.process_time() - cpu) / count,
        "kB of a run": (kilobytes("VmHWM") - before) / count,
    }


async def _finished(begin: Begin, count: int) -> dict[str, float]:
    # What the first fifth leaves is mostly what is loaded and allocated once.
    first = count // 5
    await _a_few_at_a_time(begin, first)
    before = kilobytes("VmRSS")
    await _a_few_at_a_time(begin, count - first)
    return {"kB of a run": (kilobytes("VmRSS") - before) / (count - first)}


async def _a_few_at_a_time(begin: Begin, count: int) -> None:
    places = asyncio.Semaphore(_FEW)

    async def one() -> None:
        async with places:
            await begin()

    await asyncio.gather(*(one() for _ in range(count)))
    settle()


def begin_anew() -> int:
    """Forget the peak of memory, and give what is in use."""
    settle()
    _CLEAR.write_text(_CLEAR_PEAK)
    return kilobytes("VmRSS")


def settle() -> None:
    """Give back all memory that is free."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def kilobytes(field: str) -> int:
    lines = _STATUS.read_text().splitlines()
    values: Mapping[str, Any] = dict(line.split(":", 1) for line in lines)
    return int(values[field].split()[0])


async def _main(side: str, kind: str, count: int, base_url: str) -> dict[str, float]:
    is_finished = kind == "finished"
    begin = ALL_SIDES[side](WORKLOADS["fan-out"], base_url, heard=False, at_once=is_finished)
    await begin()
    return await (_finished if is_finished else _together)(begin, count)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]))))
