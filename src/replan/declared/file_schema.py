"""The JSON schemas of files that declare something, for editors."""

from typing import Any, cast

from pydantic import BaseModel

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_NONE = {"type": "null"}


def file_schema(kind: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) that files of a kind keep."""
    schema = kind.model_json_schema()
    for definition in (schema, *schema["$defs"].values()):
        for field in definition.get("properties", {}).values():
            _without_none(field)
    return {"$schema": _DIALECT, **schema}


def _without_none(field: dict[str, Any]) -> None:
    if field.get("default", ...) is None:
        del field["default"]
    kinds = cast("list[dict[str, Any]]", field.get("anyOf", []))
    if _NONE in kinds:
        left = [each for each in kinds if each != _NONE]
        del field["anyOf"]
        field.update(left[0] if len(left) == 1 else {"anyOf": left})
