"""What a server reads and writes, so that FastAPI can describe it."""

from pydantic import ConfigDict

from replan.base.values import Value


class ApiModel(Value):
    """A body, a query or an answer: built when the server starts, so that no request waits."""

    model_config = ConfigDict(defer_build=False)
