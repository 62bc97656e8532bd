"""Fields that are a chat model, and the prompts of models."""

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, PlainValidator, ValidationInfo, WithJsonSchema

from replan.declared.fields import meant
from replan.declared.surroundings import refused
from replan.ports.built_in import built_in_models, is_built_in
from replan.team.fallback import Fallback, in_order
from replan.team.fields.given import surroundings_of
from replan.team.fields.prompt_files import prompt_text

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


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


def model(given: object, info: ValidationInfo) -> object:
    """Take a chat model, a name or a `Fallback`; in a file, a name that is known."""
    around = surroundings_of(info)
    if isinstance(given, Fallback) and around is None:
        if len(given.models) == 1:
            fix = "Add a second model, or give the model without Fallback."
            raise refused("no_fallback", "This Fallback has only one model.", fix)
        return Fallback(*(one_model(each, info) for each in given.models))
    found = one_model(given, info)
    if around is None or not isinstance(found, str):
        return found
    names = in_order(found, around.fallbacks)
    return Fallback(*names) if len(names) > 1 else found


def one_model(given: object, info: ValidationInfo) -> Any:
    """Take a chat model or a name; in a file, a name that is known."""
    around = surroundings_of(info)
    if not isinstance(given, str):
        if around is None and _is_chat_model(given):
            return given
        fix = "Give a name such as 'openai:NAME', or in Python a LangChain chat model."
        raise refused("wrong_type", "This is not a chat model.", fix)
    if around is None or given in around.models or is_built_in([given]):
        return given
    if ":" in given.strip(": "):
        return given
    other = "Name it under models, or write offline, openai:NAME or PROVIDER:NAME."
    fix = meant(given, [*around.models, *built_in_models()], other)
    raise refused("unknown_model", "No model has this name.", fix)


def prompt(given: object, info: ValidationInfo) -> object:
    around = surroundings_of(info)
    return given if around is None else prompt_text(given, around.folder)


def _is_chat_model(given: object) -> bool:
    from langchain_core.language_models import BaseChatModel  # noqa: PLC0415 - a name needs none

    return isinstance(given, BaseChatModel)


# A type checker sees what Python gives; at run time no framework is imported for it.
if TYPE_CHECKING:
    Model = BaseChatModel | Fallback | str
    ModelName = str
    Prompt = str
else:
    Model = Annotated[Any, PlainValidator(model), WithJsonSchema({"type": "string"})]
    ModelName = Annotated[str, PlainValidator(one_model), WithJsonSchema({"type": "string"})]
    Prompt = Annotated[str, BeforeValidator(prompt), WithJsonSchema(_PROMPT)]
