"""Sends spans and metrics by OTLP over HTTP; a receiver that is away costs one line of the log.

They wait in bounded queues and are sent by threads of their own, so no run waits for them.
"""
# OpenTelemetry leaves the types of some further arguments open, so these methods read as unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import logging
import os
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    MetricExportResult,
    MetricsData,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult

from replan.base.failures import describe
from replan.base.secrets.masking import without_secrets

LAST_SECONDS = 3.0
"""How long the end of a program waits for what is still to be sent."""

_log = logging.getLogger(__name__)

# The loggers of OpenTelemetry that log each attempt to send a batch.
_TALKATIVE = (
    OTLPSpanExporter.__module__,
    OTLPMetricExporter.__module__,
    "opentelemetry.sdk._shared_internal",
)
LineTaker = Callable[[str], None]
"""Takes a line that is kept back from the log."""

_line_taker: ContextVar[LineTaker | None] = ContextVar("replan_otlp_lines", default=None)


def _is_logged(record: logging.LogRecord) -> bool:
    """Whether a line of OpenTelemetry is logged, and not kept back."""
    taker = _line_taker.get()
    if taker is not None:
        taker(record.getMessage())
    return taker is None


@contextmanager
def _divert_lines_to(taker: LineTaker) -> Generator[None]:
    token = _line_taker.set(taker)
    try:
        yield
    finally:
        _line_taker.reset(token)


def _nobody(_: str) -> None:
    """Ignores what is already known."""


class Receiver:
    """Where spans and metrics are sent; that it is away is reported once, until it is back."""

    def __init__(self, where: str, missed: LineTaker | None = None) -> None:
        self.news = threading.Event()  # something is not received, or all is sent
        self._where, self._missed = where, missed
        self._away = set[str]()

    @property
    def is_away(self) -> bool:
        """Whether the newest spans were not received."""
        return "spans" in self._away

    def deliver(self, what: str, send: Callable[[], Any], good: object) -> Any:
        """Send something, and tell as soon as it is not received."""
        result = None
        with _divert_lines_to(partial(self.report_missing, what)):
            try:
                result = send()
            except Exception as error:  # noqa: BLE001 - whatever it is, it concerns no run
                self.report_missing(what, describe(error))
        if result is good:
            self._away.discard(what)
        return result

    def report_missing(self, what: str, reason: str) -> None:
        """Report that something is not received, unless that is known."""
        is_known = self.is_away or what in self._away
        self._away.add(what)
        if not is_known:
            about = {"what": what, "receiver": self._where, "reason": without_secrets(reason)}
            _log.warning("traces are not received", extra=about)
            if self._missed is not None:
                self._missed(about["reason"])
        self.news.set()


class _Spans(OTLPSpanExporter):
    def __init__(self, receiver: Receiver) -> None:
        super().__init__()
        self._receiver = receiver

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        good, send = SpanExportResult.SUCCESS, super().export
        return (
            self._receiver.deliver("spans", lambda: send(spans), good) or SpanExportResult.FAILURE
        )


class _Metrics(OTLPMetricExporter):
    def __init__(self, receiver: Receiver) -> None:
        super().__init__()
        self._receiver = receiver

    def export(
        self, metrics_data: MetricsData, timeout_millis: float | None = None, **_: Any
    ) -> MetricExportResult:
        good, send = MetricExportResult.SUCCESS, super().export
        sent = self._receiver.deliver("metrics", lambda: send(metrics_data, timeout_millis), good)
        return sent or MetricExportResult.FAILURE


class _Batches(BatchSpanProcessor):
    def __init__(self, exporter: _Spans, receiver: Receiver) -> None:
        super().__init__(exporter)
        self._receiver = receiver

    def on_end(self, span: ReadableSpan) -> None:
        """Queue a span; a queue that is full of unreceived spans was already reported."""
        if not self._receiver.is_away:
            super().on_end(span)
            return
        with _divert_lines_to(_nobody):
            super().on_end(span)


@contextmanager
def sending(
    where: str, missed: LineTaker | None = None
) -> Generator[tuple[TracerProvider, MeterProvider]]:
    """Send what is traced inside; at the end what is left, for as long as that may take."""
    receiver, resource = Receiver(where, missed), _resource()
    spans, metrics = _Spans(receiver), _Metrics(receiver)
    traced = TracerProvider(resource=resource, shutdown_on_exit=False)
    if _is_sent("OTEL_TRACES_EXPORTER"):
        traced.add_span_processor(_Batches(spans, receiver))
    readers = [PeriodicExportingMetricReader(metrics)] if _is_sent("OTEL_METRICS_EXPORTER") else []
    metered = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
    for name in _TALKATIVE:
        logging.getLogger(name).addFilter(_is_logged)
    try:
        yield traced, metered
    finally:
        receiver.news.clear()
        _start_thread(traced.shutdown, metered.shutdown, receiver.news.set)
        if not receiver.news.wait(LAST_SECONDS):
            receiver.report_missing("spans", f"not all was sent within {LAST_SECONDS:g} s")
        with _divert_lines_to(_nobody):
            # Whoever waits to try again waits no longer.
            spans.shutdown()
            metrics.shutdown()


def _start_thread(*works: Callable[[], object]) -> None:
    """Do one after another in a thread that the process does not wait for."""

    def done() -> None:
        with _divert_lines_to(_nobody):
            for work in works:
                work()

    threading.Thread(target=done, name="replan-traces", daemon=True).start()


def _resource() -> Resource:
    resource = Resource.create()
    is_named = not str(resource.attributes[SERVICE_NAME]).startswith("unknown_service")
    return resource if is_named else resource.merge(Resource({SERVICE_NAME: "replan"}))


def _is_sent(variable: str) -> bool:
    return os.environ.get(variable, "").strip().casefold() != "none"
