"""Traces that are sent by OTLP over HTTP, to where the variables of OpenTelemetry say."""

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from urllib.parse import urlsplit

from replan.base.errors import ConfigurationError
from replan.base.secrets.masking import without_secrets
from replan.traces.option import Traces

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")

_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_WITH_CONTENT = {"true", "span_only", "span_and_event"}
_HTTP = "http/protobuf"
_DEFAULT = "http://localhost:4318"


@contextmanager
def open_traces(*, content: bool = False) -> Generator[Traces]:
    """Open traces for the teams inside the block; the rest is sent at its end, in 3 s at most.

    The standard variables say where and how to send them: `OTEL_EXPORTER_OTLP_ENDPOINT` (without it
    `http://localhost:4318`), `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_SERVICE_NAME`,
    `OTEL_METRICS_EXPORTER=none` and the others. An unreachable receiver is logged once.
    A program that has set up OpenTelemetry itself needs `Traces()` only.

    Args:
        content: Whether texts are in the traces; see `Traces`.

    Raises:
        ConfigurationError: The extra `otel` is not installed, or the variables ask for another
            protocol than OTLP over HTTP, or name no http or https address.
    """
    with send_traces(content=content) as traces:
        yield traces


@contextmanager
def send_traces(*, content: bool, missed: Callable[[str], None] | None = None) -> Generator[Traces]:
    """Do as `open_traces`; `missed` gets the reason if sending fails, once until it works."""
    check_endpoint(os.environ)
    named = [name for name in _PROTOCOLS if os.environ.get(name)]
    if named and os.environ[named[0]] != _HTTP:
        problem, fix = "traces are sent by OTLP over HTTP only", f"Set {named[0]}={_HTTP}."
        raise ConfigurationError(named[0], os.environ[named[0]], problem, fix)
    try:
        from replan.traces.sending import sending  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise not_installed("open_traces()") from error
    with sending(endpoint(os.environ), missed) as (spans, metrics):
        yield Traces(content=content, tracer_provider=spans, meter_provider=metrics)


def are_traces_asked_for(environment: Mapping[str, str]) -> bool:
    """Whether the standard variables ask for traces."""
    is_off = environment.get("OTEL_SDK_DISABLED", "").strip().casefold() == "true"
    return not is_off and any(environment.get(name) for name in ENDPOINTS)


def check_endpoint(environment: Mapping[str, str]) -> None:
    """Refuse what is not an address of a receiver.

    Raises:
        ConfigurationError: The variable that is used has no http or https address.
    """
    name = next((name for name in ENDPOINTS if environment.get(name)), "")
    if name and not _is_address(environment[name]):
        value = without_secrets(environment[name])
        fix = f"Set {name} to an address such as {_DEFAULT}."
        raise ConfigurationError(name, value, "this is not an http or https address", fix)


def _is_address(text: str) -> bool:
    try:
        found = urlsplit(text.strip())
        _ = found.port  # it is read, and refused, only here
    except ValueError:
        return False
    return found.scheme in ("http", "https") and bool(found.hostname)


def content_asked_for(environment: Mapping[str, str]) -> bool:
    """Whether the variable of OpenTelemetry's GenAI instrumentations asks for content in spans."""
    return environment.get(_CONTENT, "").strip().casefold() in _WITH_CONTENT


def endpoint(environment: Mapping[str, str]) -> str:
    """Where traces are sent, without secrets."""
    return without_secrets(next(filter(None, map(environment.get, ENDPOINTS)), _DEFAULT))


def not_installed(value: object) -> ConfigurationError:
    """The error where traces are asked for and the extra is missing."""
    problem, fix = "OpenTelemetry is not installed", "Install it: pip install 'replan[otel]'."
    return ConfigurationError("traces", value, problem, fix)
