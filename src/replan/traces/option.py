"""How the runs of a team are traced."""

from typing import Any

from pydantic.json_schema import SkipJsonSchema

from replan.base.values import Value


class Traces(Value):
    """Runs as OpenTelemetry traces; it needs the extra `otel`.

    Attributes:
        content: Whether prompts, replies, arguments and results of tools, and errors are in the
            traces; without known secrets.
        tracer_provider: Where spans go; without it, the provider that the program has set.
        meter_provider: Where metrics go; without it, the provider that the program has set.
    """

    content: bool = False
    tracer_provider: SkipJsonSchema[Any] = None
    meter_provider: SkipJsonSchema[Any] = None
