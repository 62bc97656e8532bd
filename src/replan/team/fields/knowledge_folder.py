"""A folder with embeddings, as a team file describes it: its folder, and the name of a model."""

from collections.abc import Iterator, Mapping

from pydantic import ValidationError
from pydantic_core import InitErrorDetails

from replan.declared.part import broken

_KEYS = ("folder", "embeddings")

FIELDS = {
    "type": "object",
    "properties": {
        "folder": {"type": "string", "description": "A folder, relative to this file."},
        "embeddings": {
            "type": "string",
            "description": "The model that finds passages by their meaning, too.",
            "examples": ["openai:text-embedding-3-small"],
        },
    },
    "required": ["folder"],
    "additionalProperties": False,
}
"""The JSON schema of it."""


def folder_and_model(given: Mapping[str, object]) -> tuple[str, str | None]:
    """Read both; all mistakes are reported together."""
    if mistakes := [*_mistakes(given)]:
        raise ValidationError.from_exception_data("knowledge", mistakes)
    model = given.get("embeddings")
    return str(given["folder"]), None if model is None else str(model)


def _mistakes(given: Mapping[str, object]) -> Iterator[InitErrorDetails]:
    for key in given.keys() - set(_KEYS):
        fix = f"Use {' and '.join(_KEYS)}."
        yield broken((key,), given[key], "unknown_field", "There is no such field.", fix)
    if "folder" not in given:
        fix = "Write folder: and the name of one, relative to the file."
        yield broken(("folder",), None, "no_folder", "The folder is missing.", fix)
    for key in _KEYS:
        value = given.get(key, "x")
        if not isinstance(value, str) or not value.strip():
            fix = "Write a folder." if key == "folder" else "Write a model, such as openai:NAME."
            yield broken((key,), value, "wrong_type", "This must be text.", fix)
