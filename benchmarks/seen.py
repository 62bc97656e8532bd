"""What it costs that a run can be seen: its events in storage, and its traces.

The model is the project's own test server, in a process of its own. The
kinds of a workload take turns; CPU is that of this process with all its threads, each ratio is of
two runs of one turn, and a figure is the median of the turns. Traces are made, collected in batches
and encoded for OTLP as the SDK does it; what the HTTP of their sender takes is left out.
"""

import asyncio
import statistics
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from itertools import count
from pathlib import Path

from http_model import serving
from http_runs import REQUEST, Begin, Ran, completed, replan_graph
from http_workloads import WORKLOADS, Workload
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from over_http import Taken, in_turns
from profiling import functions_called, profiled
from reporting import Row, options, publish

from replan import RunResult, Runtime, Storage, Traces, open_runtime, open_storage, run

MOST = 1.10

OVER = {
    "traces": "nothing",
    "traces with content": "nothing",
    "events in storage": "no events",
    "events in storage, and traces": "no events",
}
"""What each kind is compared with."""

TARGETS = {"traces", "events in storage"}


def arguments() -> ArgumentParser:
    """The options of this benchmark."""
    parser = options(__doc__ or "")
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=["fan-out"])
    parser.add_argument("--repeat", type=int, default=15, help="turns (default 15)")
    parser.add_argument("--profile", choices=[*OVER, "nothing", "no events"], help="only show that")
    return parser


def main(args: Namespace) -> list[Row]:
    """Measure."""
    with serving() as base_url:
        return [
            row
            for name in args.workloads
            for row in asyncio.run(_rows(WORKLOADS[name], base_url, args))
        ]


async def _rows(workload: Workload, base_url: str, args: Namespace) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        async with open_storage(Path(folder) / "runs.db") as storage:
            plain, kept = (
                replan_graph(workload, base_url, storage=each) for each in (None, storage)
            )
            traced, told, both = (
                replan_graph(workload, base_url, storage=each, traces=traces)
                for each, traces in (
                    (None, _traces()),
                    (None, _traces().replace(content=True)),
                    (storage, _traces()),
                )
            )
            async with (
                open_runtime(kept, storage=_deaf(storage)) as unseen,
                open_runtime(kept, storage=storage) as runtime,
                open_runtime(both, storage=storage) as seen,
            ):
                kinds = {
                    "nothing": _run_of(plain),
                    "traces": _run_of(traced),
                    "traces with content": _run_of(told),
                    "no events": _run_by(unseen),
                    "events in storage": _run_by(runtime),
                    "events in storage, and traces": _run_by(seen),
                }
                if args.profile:
                    profile = await profiled(kinds[args.profile], 20)
                    return profile.rows(f"{workload.name}, {args.profile}", most=30)
                taken = await in_turns(workload, kinds, args.repeat)
                called = {kind: await functions_called(begin) for kind, begin in kinds.items()}
    return [
        {
            "table": "CPU of a run that can be seen",
            "workload": workload.name,
            "kind": kind,
            "over": base,
            "function calls": called[kind] / called[base],
            "ratio": (ratio := _over(taken[kind], taken[base])),
            "target": f"at most {MOST:g}" if kind in TARGETS else "",
            "met": ("yes" if ratio <= MOST else "no") if kind in TARGETS else "",
        }
        for kind, base in OVER.items()
    ] + [
        {
            "table": "Function calls of the main thread",
            "workload": workload.name,
            "kind": kind,
            "calls": count_of,
        }
        for kind, count_of in called.items()
    ]


def _deaf(storage: Storage) -> Storage:
    """A storage whose book of runs takes no events."""

    async def add_events(*_: object) -> int:
        return 1

    runs = copy(storage.runs)
    object.__setattr__(runs, "add_events", add_events)
    return replace(storage, runs=runs)


def _run_of(graph: object) -> Begin:
    threads = count()

    async def begin() -> Ran:
        config = {"configurable": {"thread_id": f"{id(graph)}-{next(threads)}"}}
        return _ran(await run(graph, REQUEST, config=config))

    return begin


def _run_by(runtime: Runtime) -> Begin:
    async def begin() -> Ran:
        return _ran(await runtime.run(REQUEST))

    return begin


def _ran(result: RunResult) -> Ran:
    return completed(result.outcome == "completed", Ran(result.usage.calls))


class _Encoder(SpanExporter):
    """Encodes what would be sent."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        encode_spans(spans).SerializePartialToString()
        return SpanExportResult.SUCCESS


def _traces() -> Traces:
    spans = TracerProvider()
    spans.add_span_processor(BatchSpanProcessor(_Encoder()))
    return Traces(tracer_provider=spans, meter_provider=MeterProvider([InMemoryMetricReader()]))


def _over(ours: Sequence[Taken], base: Sequence[Taken]) -> float:
    return statistics.median(a.cpu / b.cpu for a, b in zip(ours, base, strict=True))


if __name__ == "__main__":
    publish("seen", arguments().parse_args(), main)
