"""The values of checkpoints that live as long as one call: kept as they are, not written."""

from typing import Any, cast

from langgraph.checkpoint.serde.base import SerializerProtocol

from replan.adapters.storage.stored_values.serializer import strict_serializer

_LIVE = "live"


class CallValues(SerializerProtocol):
    """Gives a saver in memory the values themselves: most of them are frozen.

    To write and read them back took half of the time of a turn whose run waits. Lists and mappings
    are copied, so that who adds to one changes no checkpoint.
    """

    def __init__(self) -> None:
        self._written = strict_serializer()

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        if isinstance(obj, dict) and "channel_versions" in obj:
            # LangGraph keeps changing what is inside a checkpoint.
            return self._written.dumps_typed(obj)
        return _LIVE, cast("bytes", _copied(obj))

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, value = data
        return _copied(value) if kind == _LIVE else self._written.loads_typed(data)


def _copied(value: Any) -> Any:
    return cast("Any", value).copy() if isinstance(value, list | dict) else value
