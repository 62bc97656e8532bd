"""The outcome of a call of an MCP server's tool, as text for a model."""

from collections.abc import Iterator

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

from replan.base.texts.storable import storable_text
from replan.base.values import json_text


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
