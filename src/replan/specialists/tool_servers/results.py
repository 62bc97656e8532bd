"""What a tool server may send, and the outcome of a call of its tools, as text for a model.

MCP's client reads a program's messages line by line, and bounds no line. What it lets one choose
is the encoding, so the bound is one. It checks results by the schemas that the server declares, in
the event loop, however long that takes: so it is given only the part that takes no time.
"""

import codecs
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, cast

from mcp_types import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from typing_extensions import Buffer

from replan.base.texts.storable import storable_text
from replan.base.values import fields_in, json_text

LONGEST_MESSAGE = 10_000_000
"""Bytes of one message: pictures come in them, as text."""

_MOST_FIELDS = 1_000
_TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")

LINES = "replan-bounded-lines"
"""The name of the encoding: UTF-8 that is given by whole lines, as long as these are bounded."""

TOO_LONG = f"one of its messages has more than {LONGEST_MESSAGE:,} bytes"

on_long_line: ContextVar[Callable[[], None]] = ContextVar("replan_mcp_line_too_long")
"""Called for a line that is too long; set in the task that reads the lines."""


class _Lines(codecs.IncrementalDecoder):
    """Holds a line back until it is complete; ends after a line that is too long."""

    def __init__(self, errors: str = "strict") -> None:
        super().__init__(errors)
        self._tell = on_long_line.get()
        self._held: list[bytes] = []
        self._length = 0
        self._is_over = False

    def decode(self, input: Buffer, final: bool = False) -> str:  # noqa: A002, FBT001, FBT002 - its base's signature
        if self._is_over:
            return ""
        read, whole = bytes(input), b""
        end = read.rfind(b"\n") + 1
        if end:
            whole = b"".join([*self._held, read[:end]])
            self._held.clear()
            self._length = 0
        self._held.append(read[end:])
        self._length += len(read) - end
        if self._length > LONGEST_MESSAGE:
            self._held.clear()
            self._is_over = True
            self._tell()
        return whole.decode("utf-8", self.errors)


def _codec(name: str) -> codecs.CodecInfo | None:
    """The encoding `LINES`; None for any other name, for which Python asks others."""
    if name.replace("_", "-") != LINES:
        return None
    plain = codecs.lookup("utf-8")
    return codecs.CodecInfo(plain.encode, plain.decode, incrementaldecoder=_Lines, name=LINES)


codecs.register(_codec)


def bound_result_forms(result: dict[str, Any]) -> None:
    """Leave of the forms that a list of tools declares for results the fields and their types."""
    tools = result.get("tools")
    for tool in cast("list[Any]", tools if isinstance(tools, list) else []):
        if isinstance(tool, dict) and "outputSchema" in tool:
            tool["outputSchema"] = _fields_of(cast("Any", tool["outputSchema"]))


def _fields_of(schema: Any) -> dict[str, Any] | None:
    """The fields at the top of a schema; None for one that a client could not check in no time."""
    declared = fields_in(schema)
    fields = fields_in(declared.get("properties"))
    names: object = declared.get("required", [])
    required = cast("list[Any]", names) if isinstance(names, list) else None
    if required is None or len(fields) + len(required) > _MOST_FIELDS:
        return None
    types = {name: fields_in(field).get("type") for name, field in fields.items()}
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in types.items() if kind in _TYPES},
        "required": [name for name in required if isinstance(name, str)],
    }


def text_of(result: CallToolResult) -> str:
    """Write all of a result; what is not text is named, since most models take none from tools."""
    blocks = "\n".join(_written(result.content))
    if not blocks and result.structured_content is not None:
        blocks = json_text(result.structured_content)
    return storable_text(blocks)


def _written(blocks: list[ContentBlock]) -> Iterator[str]:
    for block in blocks:
        match block:
            case TextContent():
                yield block.text
            case ImageContent() | AudioContent():
                yield f"[{block.type} of type {block.mime_type}, {_size(block.data)}, not shown]"
            case ResourceLink():
                yield f"[{block.name}: {block.uri}] {block.description or ''}".rstrip()
            case EmbeddedResource(resource=TextResourceContents() as resource):
                yield f"[{resource.uri}]\n{resource.text}"
            case EmbeddedResource():
                blob = getattr(block.resource, "blob", "")
                kind = block.resource.mime_type or "unknown type"
                yield f"[{block.resource.uri}: {kind}, {_size(blob)}, not shown]"


def _size(base64: str) -> str:
    return f"{len(base64) * 3 // 4:,} bytes"
