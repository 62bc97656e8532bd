"""Traces that are sent by OTLP: what a receiver gets, and what becomes of runs without one."""

import logging
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from typer.testing import CliRunner

from http_answers import Answering, serving
from postgres import free_port
from replan import ConfigurationError, Host, Specialist, Team, open_traces, run_sync
from replan.cli.main import app
from replan.traces.sending import LAST_SECONDS

PLAN = {"plan": "# Do\n\n- [ ] 1. Do it @worker\n"}


class Receiver(ThreadingHTTPServer):
    """An OTLP receiver over HTTP."""

    daemon_threads = True

    def __init__(self):
        self.traces, self.metrics, self.headers, self.status = [], [], [], 200
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def spans(self):
        return [
            (resource, span)
            for request in self.traces
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


class _Handler(Answering, BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        kinds = {
            "/v1/traces": (ExportTraceServiceRequest, self.server.traces),
            "/v1/metrics": (ExportMetricsServiceRequest, self.server.metrics),
        }
        kind, kept = kinds[self.path]
        kept.append(kind.FromString(body))
        self.server.headers.append(dict(self.headers))
        self.give(self.server.status)


@pytest.fixture
def receiver(monkeypatch) -> Iterator[Receiver]:
    server = Receiver()
    with serving(server) as url:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        yield server


@pytest.fixture
def nobody(monkeypatch) -> str:
    url = f"http://127.0.0.1:{free_port()}"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
    return url


def team(traces):
    worker = Specialist("worker", "Works.", run=lambda context: "done")
    return Team(Host(model="offline"), [worker], traces=traces)


def lines_of(caplog):
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


def test_a_receiver_gets_spans_and_metrics_of_a_run(receiver, monkeypatch, caplog):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-api-key=its%20key")
    with open_traces() as traces:
        assert run_sync(team(traces), PLAN).outcome == "completed"
    spans = {span.name: span for _, span in receiver.spans}
    above = ["invoke_agent worker", "step 1", "round 1", "invoke_workflow replan"]
    for name, parent in pairwise(above):
        assert spans[name].parent_span_id == spans[parent].span_id
    (resource, _), *_ = receiver.spans
    about = {each.key: each.value.string_value for each in resource.resource.attributes}
    assert about["service.name"] == "replan"
    names = {
        metric.name
        for request in receiver.metrics
        for each in request.resource_metrics
        for scope in each.scope_metrics
        for metric in scope.metrics
    }
    assert {"replan.step.duration", "gen_ai.client.operation.duration"} <= names
    assert all(headers["x-api-key"] == "its key" for headers in receiver.headers)
    assert lines_of(caplog) == []


def test_metrics_can_be_left_out_and_the_service_named(receiver, monkeypatch):
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
    with open_traces() as traces:
        run_sync(team(traces), PLAN)
    (resource, _), *_ = receiver.spans
    about = {each.key: each.value.string_value for each in resource.resource.attributes}
    assert about["service.name"] == "shop"
    assert receiver.metrics == []


def test_a_receiver_that_is_away_costs_one_line_of_the_log_and_no_time(nobody, caplog):
    with open_traces() as traces:
        graph = team(traces)
        assert run_sync(graph, PLAN).outcome == "completed"
        assert run_sync(graph, PLAN).outcome == "completed"
        # Each of these is a batch of its own.
        traces.tracer_provider.force_flush()
        run_sync(graph, PLAN)
    assert lines_of(caplog) == ["traces are not received"]
    assert caplog.records[-1].receiver == nobody


def test_a_receiver_that_refuses_costs_one_line_too(receiver, caplog):
    receiver.status = 404
    with open_traces() as traces:
        for _ in range(3):
            run_sync(team(traces), PLAN)
            traces.tracer_provider.force_flush()
    assert len(receiver.traces) >= 3
    assert lines_of(caplog) == ["traces are not received"]


def test_a_receiver_that_never_answers_holds_up_the_end_for_a_moment_only(monkeypatch, caplog):
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        with open_traces() as traces:
            run_sync(team(traces), PLAN)
            began = time.monotonic()
        assert time.monotonic() - began < 2 * LAST_SECONDS
    assert lines_of(caplog) == ["traces are not received"]


def test_another_protocol_is_refused_by_its_name(monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    refused = r"over HTTP.*'grpc'.*=http/protobuf"
    with pytest.raises(ConfigurationError, match=refused), open_traces():
        pytest.fail("they are open")


@pytest.fixture
def told(tmp_path):
    plan = tmp_path / "do.md"
    plan.write_text("# Sum\n\n- [ ] 1. calculate 6 * 7 @calculator\n")

    def command():
        where = str(tmp_path / "runs.db")
        ended = CliRunner().invoke(app, ["run", str(plan), "--storage", where, "--plain"])
        assert ended.exit_code == 0, ended.output
        return ended.stderr.splitlines()

    return command


def test_the_terminal_sends_traces_where_the_variables_say_and_tells_it(receiver, told):
    (first, *_) = told()
    assert first == (
        f"traces go to {receiver.url}, without prompts, results and answers; "
        "OTEL_SDK_DISABLED=true turns them off"
    )
    names = [span.name for _, span in receiver.spans]
    assert "invoke_workflow replan" in names
    assert not any("6 * 7" in str(request) for request in receiver.traces)


def test_the_terminal_sends_content_only_where_a_variable_asks_for_it(receiver, told, monkeypatch):
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    (first, *_) = told()
    assert "with prompts, results and answers" in first
    assert any("6 * 7" in str(request) for request in receiver.traces)


def test_the_terminal_works_on_without_traces_where_they_cannot_be_sent(
    receiver, told, monkeypatch
):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    (first, *_) = told()
    assert first.startswith("no traces: OTEL_EXPORTER_OTLP_PROTOCOL: ")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert not any("traces" in line for line in told())
    assert receiver.traces == []


@pytest.mark.parametrize("address", ["not a url", "nonsense://x", "http://", "http://a:port"])
def test_what_is_no_address_of_a_receiver_is_refused(address, monkeypatch, tmp_path):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    problem = "OTEL_EXPORTER_OTLP_ENDPOINT: .*not an http or https address.*http://localhost:4318"
    with pytest.raises(ConfigurationError, match=problem), open_traces():
        pytest.fail("they are open")
    plan = tmp_path / "do.md"
    plan.write_text("- [ ] 1. calculate 6 * 7 @calculator\n")
    asked = ["run", str(plan), "--storage", str(tmp_path / "runs.db"), "--plain"]
    ended = CliRunner().invoke(app, asked)
    assert (ended.exit_code, "OTEL_EXPORTER_OTLP_ENDPOINT" in ended.stderr) == (2, True)


def test_the_terminal_says_at_the_end_that_traces_were_not_received(nobody, told):
    assert told()[-1].startswith(f"warning: not all traces were received by {nobody}: ")
