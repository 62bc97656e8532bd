"""The instruments of one process: labels neither grow with runs nor name tenants."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    start_http_server,
)
from prometheus_client.exposition import choose_encoder

from replan.base.errors import InputError
from replan.log.calls import calls_of
from replan.log.events.types import (
    BaseEvent,
    MemorySummary,
    ModelCompleted,
    RunStopped,
    SpecialistCompleted,
    TaskCompleted,
)

_CALL = (0.1, 0.3, 1, 3, 10, 30, 60, 180, 600)
_RUN = (0.1, 0.3, 1, 3, 10, 30, 60, 180, 600, 1_800, 3_600)
_LAG = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1, 5)

Standing = Mapping[tuple[str, str], int]
"""The number of runs that are not over, by team and outcome."""


class Watch:
    """Counts what the runs of a process do, and writes it for Prometheus."""

    def __init__(self) -> None:
        """Make the instruments; each process has its own."""
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        histogram = partial(Histogram, registry=registry)
        self._rests = counter(
            "replan_runs",
            "Runs that came to rest here, by their status.",
            ["team", "outcome"],
        )
        about = "Runs whose work ended with an error here; they can be resumed."
        self._errors = counter("replan_run_errors", about, ["team"])
        about = "Seconds of work on a run since it began, when it comes to rest."
        self._run_seconds = histogram("replan_run_seconds", about, ["team"], buckets=_RUN)
        about, labels = "Seconds of a step with all its attempts.", ["team", "specialist", "status"]
        self._steps = histogram("replan_step_seconds", about, labels, buckets=_RUN)
        about, labels = "Seconds of a call of a model.", ["team", "model", "result"]
        self._calls = histogram("replan_model_call_seconds", about, labels, buckets=_CALL)
        labels = ["team", "model", "kind"]
        self._tokens = counter("replan_model_tokens", "Tokens of models.", labels)
        about = "What calls of models are charged, in the currency of the prices."
        self._cost = counter("replan_model_cost", about, ["team", "model"])
        about = "Runs that this process works on."
        self._at_work = gauge("replan_runs_active", about, ["team"])
        self._standing = gauge(
            "replan_runs_unfinished",
            "Runs in the storage that are not over, no matter which process works on them.",
            ["team", "outcome"],
        )
        about = "Runs that wait in the queue for a worker."
        self._queued = gauge("replan_runs_queued", about, ["team"])
        self._streams = gauge("replan_open_streams", "Open streams of events.")
        about = "Seconds by which the event loop woke late."
        self._lag = histogram("replan_loop_lag_seconds", about, buckets=_LAG)

    def on_event(self, team: str, event: BaseEvent) -> None:
        """Count an event of a run of a team."""
        match event:
            case ModelCompleted() | MemorySummary():
                self._answered(team, event)
            case SpecialistCompleted():
                seconds, status = event.step_seconds or 0.0, event.step_status.value
                self._steps.labels(team, event.specialist, status).observe(seconds)
            case TaskCompleted() | RunStopped():
                self._rested(team, event)
            case _:
                pass

    def counts_works(self, team: str, number: Callable[[], int]) -> None:
        """Count the runs of a team at work here, at each scrape."""
        self._at_work.labels(team).set_function(number)

    def counts_streams(self, number: Callable[[], int]) -> None:
        """Count the open streams at each scrape."""
        self._streams.set_function(number)

    def lagged(self, seconds: float) -> None:
        """Note how late the event loop was."""
        self._lag.observe(seconds)

    def stands(self, standing: Standing) -> None:
        """Note which runs in the storage are not over."""
        self._standing.clear()
        for (team, outcome), number in standing.items():
            self._standing.labels(team, outcome).set(number)

    def queues(self, waiting: Mapping[str, int]) -> None:
        """Note how many runs wait in the queue, by their teams."""
        for team, number in waiting.items():
            self._queued.labels(team).set(number)

    def written(self, accept: str) -> tuple[bytes, str]:
        """All figures, in the newest form that the reader accepts, and the media type."""
        encoder, media_type = choose_encoder(accept)
        return encoder(self._registry), media_type

    @contextmanager
    def served(self, port: int) -> Generator[None]:
        """Serve metrics for Prometheus at a port of this machine, for as long as the block.

        Raises:
            InputError: The port cannot be used.
        """
        try:
            server, thread = start_http_server(port, "127.0.0.1", self._registry)
        except OSError as error:
            problem = f"The metrics cannot be served at port {port}: {error.strerror}."
            raise InputError(f"{problem} Give --metrics another port.") from error
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def _rested(self, team: str, event: TaskCompleted | RunStopped) -> None:
        self._rests.labels(team, event.outcome).inc()
        is_over = isinstance(event, TaskCompleted)
        seconds = event.run_seconds if is_over else event.seconds
        self._run_seconds.labels(team).observe(seconds or 0.0)
        if isinstance(event, RunStopped) and event.reason == "failed":
            self._errors.labels(team).inc()

    def _answered(self, team: str, event: ModelCompleted | MemorySummary) -> None:
        result, calls = "failed" if event.error else "ok", calls_of([event])
        for _ in range(calls.calls):
            # Of the calls for one summary, only their sum is known.
            seconds = calls.seconds / calls.calls
            self._calls.labels(team, event.model, result).observe(seconds)
        for kind, tokens in (("input", calls.input_tokens), ("output", calls.output_tokens)):
            self._tokens.labels(team, event.model, kind).inc(max(0, tokens))
        self._cost.labels(team, event.model).inc(max(0.0, calls.known_cost))


BEAT = 0.25
"""Seconds between two looks at the clock."""


@asynccontextmanager
async def watch_loop_lag(tell: Callable[[float], None]) -> AsyncGenerator[None]:
    """Tell how late the loop woke, again and again, for as long as the block."""
    loop = asyncio.get_running_loop()

    def look(due: float) -> None:
        nonlocal handle
        now = loop.time()
        tell(max(0.0, now - due))
        handle = loop.call_at(now + BEAT, look, now + BEAT)

    handle = loop.call_later(BEAT, look, loop.time() + BEAT)
    try:
        yield
    finally:
        handle.cancel()
