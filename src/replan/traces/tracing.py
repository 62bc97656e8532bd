"""What traces the calls of a graph: bound to the providers of spans and metrics."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version

from opentelemetry import metrics, trace
from opentelemetry.trace import Link, SpanContext, TraceFlags

from replan.traces.call_trace import CallTrace
from replan.traces.meters import Meters, Telemetry
from replan.traces.option import Traces

SCHEMA = "https://opentelemetry.io/schemas/1.41.0"

_NAME = "replan"
_REF = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")


@dataclass(frozen=True)
class Tracing:
    """What traces calls of graphs."""

    telemetry: Telemetry

    def begin(
        self, team: str, thread_id: str, earlier: str, worked: Mapping[object, float]
    ) -> CallTrace:
        """Begin to trace a call; `earlier` is the `ref` of the call that it continues with."""
        return CallTrace(self, self.telemetry, team, thread_id, _links(earlier), worked)


def tracing_of(traces: Traces) -> Tracing:
    """Bind to the providers; those of the program are found when the first span is made."""
    replan_version = version("replan")
    tracer = trace.get_tracer(_NAME, replan_version, traces.tracer_provider, SCHEMA)
    meter = metrics.get_meter(_NAME, replan_version, traces.meter_provider, SCHEMA)
    return Tracing(Telemetry(tracer, Meters(meter), traces.content))


def _links(ref: str) -> list[Link]:
    match = _REF.fullmatch(ref)
    if match is None:
        return []
    trace_id, span_id, flags = (int(part, 16) for part in match.groups())
    return [Link(SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags)))]
