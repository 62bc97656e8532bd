"""What of a form stands there without a title or without a word of what it is."""

from typing import Any

# LangChain's own, which its clients know and draw by themselves.
FOREIGN = ("Message", "MessageChunk", "ToolCall", "ToolCallChunk", "UsageMetadata", "TokenDetails")


def unnamed_in(schema: dict[str, Any]) -> list[str]:
    """The properties of a JSON schema, and of all that it is made of, that lack either."""
    parts = {"": schema, **schema.get("$defs", {})}
    own = {name: part for name, part in parts.items() if not name.endswith(FOREIGN)}
    return [place for name, part in own.items() for place in _unnamed(part, name)]


def _unnamed(part: Any, place: str) -> list[str]:
    if isinstance(part, list):
        return [found for each in part for found in _unnamed(each, place)]
    if not isinstance(part, dict):
        return []
    found = []
    for name, each in part.get("properties", {}).items():
        is_titled = "title" in each or "$ref" in str(each)
        if not (each.get("description") and is_titled):
            found.append(f"{place}.{name}")
        found += _unnamed(each, f"{place}.{name}")
    for key in ("anyOf", "oneOf", "allOf", "prefixItems", "items", "additionalProperties"):
        found += _unnamed(part.get(key), place)
    return found
