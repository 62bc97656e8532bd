"""Spans that a test looks at, as a tree of lines."""

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from replan import Traces

SHOWN = ("replan.outcome", "error.type")


class Seen:
    """What was traced."""

    def __init__(self, *, content=False):
        self._memory, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._memory))
        meters = MeterProvider([self._reader], shutdown_on_exit=False)
        self.traces = Traces(content=content, tracer_provider=self.provider, meter_provider=meters)

    @property
    def spans(self) -> list[ReadableSpan]:
        return sorted(self._memory.get_finished_spans(), key=lambda span: span.start_time)

    @property
    def lines(self) -> list[str]:
        """All spans, each below its parent, with how it ended."""
        known = {span.context.span_id for span in self.spans}
        roots = [each for each in self.spans if each.parent is None or _above(each) not in known]
        return [line for root in roots for line in self._tree(root, 0)]

    def _tree(self, span, depth):
        own = span.context.span_id
        words = [span.name, *(span.attributes[each] for each in SHOWN if each in span.attributes)]
        failed = "!" if span.status.status_code.name == "ERROR" else ""
        below = [each for each in self.spans if each.parent and _above(each) == own]
        lines = [line for each in below for line in self._tree(each, depth + 1)]
        return [f"{'  ' * depth}{' '.join(words)}{failed}", *lines]

    def named(self, name) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name.startswith(name)]

    @property
    def points(self) -> list[tuple[str, dict, float]]:
        """The name, attributes and sum of each point of a metric."""
        read = self._reader.get_metrics_data()
        return [
            (
                metric.name,
                dict(point.attributes),
                point.sum if hasattr(point, "sum") else point.value,
            )
            for resource in read.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            for point in metric.data.data_points
        ]


def _above(span):
    return span.parent.span_id
