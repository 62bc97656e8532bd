"""What spans and metrics are made with, and whether texts go with them."""

from dataclasses import dataclass

from opentelemetry.trace import Tracer

from replan.traces.meters import Meters


@dataclass(frozen=True)
class Telemetry:
    """The tracer and the meters of a program."""

    tracer: Tracer
    meters: Meters
    content: bool  # whether prompts and replies of models, and results, are told
