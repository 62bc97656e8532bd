"""The JSON schema of team files, for editors."""

from typing import Any, cast

from replan.team.file_team import FileTeam

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_NONE = {"type": "null"}


def team_schema() -> dict[str, Any]:
    """Give the JSON schema (draft 2020-12) that team files keep."""
    schema = FileTeam.model_json_schema()
    for definition in (schema, *schema["$defs"].values()):
        definition["title"] = f"Replan {definition['title'].removeprefix('File').lower()}"
        for field in definition["properties"].values():
            _without_none(field)
    return {"$schema": _DIALECT, **schema}


def _without_none(field: dict[str, Any]) -> None:
    if field.get("default", ...) is None:
        del field["default"]
    kinds = cast("list[dict[str, Any]]", field.get("anyOf", []))
    if _NONE in kinds:
        (kind,) = (each for each in kinds if each != _NONE)
        del field["anyOf"]
        field.update(kind)
