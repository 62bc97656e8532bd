"""Fields that are a chat model, and the prompts of models."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import BaseModel, BeforeValidator, PlainValidator, ValidationInfo, WithJsonSchema

from replan.base.declared.part import did_you_mean, field_error
from replan.ports.built_in import built_in_models, is_built_in
from replan.team.chats import Fallback, with_fallbacks
from replan.team.fields.given import surroundings_of

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_LARGEST_PROMPT = 500_000
_PROMPT = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {
                "file": {
                    "type": "string",
                    "description": "A text file in the folder of this file, relative to it.",
                    "examples": ["prompts/researcher.md"],
                }
            },
            "required": ["file"],
            "additionalProperties": False,
        },
    ]
}


def model(value: object, info: ValidationInfo) -> object:
    """Take a chat model, a name or a `Fallback`; in a file, a name that is known."""
    around = surroundings_of(info)
    if isinstance(value, Fallback) and around is None:
        if len(value.models) == 1:
            fix = "Add a second model, or give the model without Fallback."
            raise field_error("no_fallback", "This Fallback has only one model.", fix)
        return Fallback(*(one_model(one, info) for one in value.models))
    found = one_model(value, info)
    if around is None or not isinstance(found, str):
        return found
    names = with_fallbacks(found, around.fallbacks)
    return Fallback(*names) if len(names) > 1 else found


def one_model(value: object, info: ValidationInfo) -> Any:
    """Take a chat model or a name; in a file, a name that is known."""
    around = surroundings_of(info)
    if not isinstance(value, str):
        if around is None and _is_chat_model(value):
            return value
        fix = "Give a name such as 'openai:NAME', or in Python a LangChain chat model."
        raise field_error("wrong_type", "This is not a chat model.", fix)
    if around is None or value in around.models or is_built_in([value]):
        return value
    if ":" in value.strip(": "):
        return value
    other = "Name it under models, or write offline, openai:NAME or PROVIDER:NAME."
    fix = did_you_mean(value, [*around.models, *built_in_models()], other)
    raise field_error("unknown_model", "No model has this name.", fix)


def models_of(part: BaseModel) -> dict[str, Any]:
    """The models that a part of a team is given, by their fields."""
    names = [name for name in type(part).model_fields if name.endswith("model")]
    return {name: model for name in names if (model := getattr(part, name)) is not None}


def prompt(value: object, info: ValidationInfo) -> object:
    around = surroundings_of(info)
    return value if around is None else _prompt_text(value, around.folder)


def _prompt_text(value: object, folder: Path) -> object:
    """Return the text of a prompt; what is neither a text nor a file is given back as it is."""
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, Any]", value)
    name = fields.get("file")
    if not isinstance(name, str) or len(fields) != 1:
        fix = "Write the prompt itself, or {file: NAME.md} and nothing else."
        raise field_error("bad_prompt", "This does not name a prompt file.", fix)
    text = _prompt_in(_prompt_path(name, folder), name).strip()
    if not text:
        raise field_error("bad_prompt", f"The prompt file '{name}' is empty.", "Write the prompt.")
    return text


def _prompt_path(name: str, folder: Path) -> Path:
    try:
        path = (folder / name).resolve()
    except (OSError, RuntimeError, ValueError):
        path = None
    if path is None or not path.is_relative_to(folder):
        reason = f"The prompt file '{name}' is not in the folder of the team file."
        fix = "Put it next to or below the team file, and write its path relative to the file."
        raise field_error("prompt_outside", reason, fix)
    return path


def _prompt_in(path: Path, name: str) -> str:
    try:
        if not path.is_file():
            fix = "Check the name; the path is relative to the team file."
            raise field_error("no_prompt_file", f"There is no prompt file '{name}'.", fix)
        if path.stat().st_size > _LARGEST_PROMPT:
            reason = f"The prompt file '{name}' is larger than {_LARGEST_PROMPT:,} bytes."
            raise field_error("bad_prompt", reason, "Keep prompts short.")
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        reason = f"The prompt file '{name}' is not UTF-8."
        raise field_error("bad_prompt", reason, "Save it as UTF-8.") from None
    except OSError as error:
        reason = f"The prompt file '{name}' cannot be read: {error.strerror}."
        raise field_error("bad_prompt", reason, "Check its name and its permissions.") from None


def _is_chat_model(value: object) -> bool:
    from langchain_core.language_models import BaseChatModel  # noqa: PLC0415 - a name needs none

    return isinstance(value, BaseChatModel)


# A type checker sees what Python gives; at run time no framework is imported for it.
if TYPE_CHECKING:
    Model = BaseChatModel | Fallback | str
    ModelName = str
    Prompt = str
else:
    Model = Annotated[Any, PlainValidator(model), WithJsonSchema({"type": "string"})]
    ModelName = Annotated[str, PlainValidator(one_model), WithJsonSchema({"type": "string"})]
    Prompt = Annotated[str, BeforeValidator(prompt), WithJsonSchema(_PROMPT)]
