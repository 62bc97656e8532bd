"""Names and numbers that others make up: whatever they are, what is traced can be sent."""

import sys
from contextvars import copy_context

import pytest
from hypothesis import given, strategies as some
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

from replan import ConfigurationError, Host, Specialist, Team, Traces, build_graph
from replan.events import (
    MessageText,
    ModelCompleted,
    ModelInvoked,
    SpecialistInvoked,
    ToolCompleted,
    WarningReported,
)
from replan.traces.conventions import LONGEST_NAME, LONGEST_TEXT, error_type, one_line
from replan.traces.tracing import tracing_of
from seen_spans import Seen

HOSTILE = "a\x1b[2J\n\u202eb\ud800\x00" + "c" * 5_000
ABOUT = {"run_id": "r", "round": 1}


@given(some.text(some.characters(exclude_categories=())))
def test_a_name_is_one_short_line_that_can_be_encoded(text):
    line = one_line(text)
    assert len(line) <= LONGEST_NAME
    assert line.encode().decode() == line
    assert not set("\0\x1b\r\n\u2028\u202e") & set(line)


def test_spans_of_hostile_names_and_numbers_can_be_sent(caplog):
    seen = Seen(content=True)
    # A trace sets what is current, in a run in the context of a node.
    copy_context().run(trace_hostile_names, seen)
    assert len(encode_spans(seen.spans).SerializeToString()) < 2 * LONGEST_TEXT + 60_000
    assert caplog.records == []
    assert len(seen.spans) == 6
    assert not any("\x1b" in span.name or "\n" in span.name for span in seen.spans)
    assert [name for name, _, _ in seen.points if "cost" in name] == []


def trace_hostile_names(seen):
    trace = tracing_of(seen.traces).begin(HOSTILE, "t", "no reference", {})
    step = {"step_id": 10**30, "specialist": HOSTILE, "attempt": 10**30}
    call = {**ABOUT, **step, "node": "n", "call": HOSTILE}
    trace.take(SpecialistInvoked(**ABOUT, **step, task=HOSTILE))
    prompt = (
        MessageText(role="human", text="x" * 3 * LONGEST_TEXT),
        MessageText(role="tool t", text="1"),
    )
    trace.take(ModelInvoked(**call, model=HOSTILE, provider=HOSTILE, prompt=prompt))
    trace.take(ModelCompleted(**call, model=HOSTILE, input_tokens=10**30, seconds=1, error=HOSTILE))
    told = {"tool": HOSTILE, "arguments": {HOSTILE: 10**30}, "effects": "pure"}
    trace.take(ToolCompleted(**call, **told, status="failed", result=HOSTILE))
    trace.take(WarningReported(**ABOUT, text=HOSTILE))
    trace.end(ValueError(HOSTILE))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ValueError: no quote", "ValueError"),
        ("Error: ValueError: no quote", "ValueError"),
        ("openai.BadRequestError: Error code: 400", "openai.BadRequestError"),
        ("The password is TimeoutError", "_OTHER"),
        ("", "_OTHER"),
        ("x" * 10_000 + "Error", "_OTHER"),
    ],
)
def test_of_an_error_only_its_class_is_told(text, kind):
    assert error_type(text) == kind


def test_traces_without_opentelemetry_are_an_error_that_names_the_extra(monkeypatch):
    for name in ("tracing", "call_trace", "node", "meters"):
        monkeypatch.delitem(sys.modules, f"replan.traces.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    worker = Specialist("worker", "Works.", run=lambda context: "done")
    with pytest.raises(ConfigurationError, match=r"traces: .* not installed .*replan\[otel\]"):
        build_graph(Team(Host(model="offline"), [worker], traces=Traces()))
