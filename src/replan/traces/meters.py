"""What spans and metrics are made with: GenAI metrics, and `replan.*` for cost, steps and runs."""

from dataclasses import dataclass

from opentelemetry.metrics import Meter
from opentelemetry.trace import Tracer

from replan.log.events.types import ModelCompleted
from replan.traces.conventions import COST, Attributes, number

_TOKENS = [float(4**power) for power in range(14)]
_SECONDS = [0.01 * 2**power for power in range(14)]
_LONG = [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 180.0, 600.0, 1800.0, 3600.0]


class Meters:
    """The instruments; no attribute of theirs grows with the number of runs."""

    def __init__(self, meter: Meter) -> None:
        """Make the instruments of a meter."""

        def histogram(name: str, unit: str, about: str, bounds: list[float]):  # noqa: ANN202
            return meter.create_histogram(
                name, unit, about, explicit_bucket_boundaries_advisory=bounds
            )

        self._calls = histogram(
            "gen_ai.client.operation.duration", "s", "GenAI operation duration.", _SECONDS
        )
        self._tokens = histogram(
            "gen_ai.client.token.usage", "{token}", "Number of tokens used.", _TOKENS
        )
        self._tools = histogram(
            "gen_ai.execute_tool.duration", "s", "GenAI tool execution duration.", _SECONDS
        )
        self._steps = histogram("replan.step.duration", "s", "All attempts of a step.", _LONG)
        self._runs = histogram(
            "replan.run.duration", "s", "Work on a run when it ends or rests.", _LONG
        )
        self._cost = meter.create_counter(
            COST, "{currency}", "What model calls are charged, in the currency of the prices."
        )

    def model_completed(self, event: ModelCompleted, about: Attributes, failed: Attributes) -> None:
        """Count a call of a model; `about` says which one and by whom."""
        self._calls.record(event.seconds, {**about, **failed})
        tokens = {"input": event.input_tokens, "output": event.output_tokens}
        for kind, count in tokens.items():
            if (whole := number(count)) is not None:
                self._tokens.record(whole, {**about, "gen_ai.token.type": kind})
        if event.cost is not None:
            self._cost.add(event.cost, about)

    def tool_completed(self, seconds: float, about: Attributes) -> None:
        """Count a call of a tool."""
        self._tools.record(seconds, about)

    def step_completed(self, seconds: float, about: Attributes) -> None:
        """Count a step, with all its attempts."""
        self._steps.record(seconds, about)

    def run_rested(self, seconds: float, about: Attributes) -> None:
        """Count the work on a run so far."""
        self._runs.record(seconds, about)


@dataclass(frozen=True)
class Telemetry:
    """The tracer and the meters of a program."""

    tracer: Tracer
    meters: Meters
    content: bool  # whether prompts and replies of models, and results, are told
