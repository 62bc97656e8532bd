"""The kinds of fields that a team file has beside plain texts and numbers."""

import re
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import (
    AfterValidator,
    BeforeValidator,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
)

from replan.errors import ConfigurationError
from replan.state.tightening import CAN_BE_OPENED
from replan.team.keys import MEND as SECRET_MEND
from replan.team.prompt_files import prompt_text
from replan.team.references import imported, named
from replan.team.surroundings import Surroundings, as_sentence, refused

_SPECIALIST = re.compile(r"[^\W_][\w-]*\Z")
_MODEL = re.compile(r"[A-Za-z0-9][\w.-]*\Z")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*\Z")
_OFFLINE = "offline"
_URL_SCHEMA = {"type": "string", "pattern": "^https?://"}
_VARIABLE_SCHEMA = {"type": "string", "pattern": "^[A-Z_][A-Z0-9_]*$"}
_REFERENCE_SCHEMA = {
    "type": "string",
    "pattern": r"^[^\s:]+:[^\s:]+$",
    "examples": ["team_tools:search"],
}
_TOOL_SCHEMA = {"anyOf": [_REFERENCE_SCHEMA, {"type": "object", "required": ["type"]}]}
_PROMPT_SCHEMA = {
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


def _around(info: ValidationInfo) -> Surroundings:
    return cast("Surroundings", info.context)


def _specialist_name(name: str) -> str:
    if not _SPECIALIST.match(name):
        mend = "Use letters, digits, '_' and '-', beginning with a letter or digit."
        raise refused("bad_name", "This is no name for a specialist.", mend)
    return name


def _not_blank(text: str) -> str:
    if not text.strip():
        raise refused("empty", "This is empty.", "Say in a sentence when to choose it.")
    return text


def _new_model(name: str) -> str:
    if name == _OFFLINE or not _MODEL.match(name):
        mend = "Use letters, digits, '_', '-' and '.'; 'offline' is the built-in model."
        raise refused("bad_name", "This is no name for a model of one's own.", mend)
    return name


def _open_field(name: str) -> str:
    if name not in CAN_BE_OPENED:
        near = get_close_matches(name, sorted(CAN_BE_OPENED), 1)
        known = f"Use some of: {', '.join(sorted(CAN_BE_OPENED))}."
        mend = f"Did you mean {near[0]}?" if near else known
        raise refused("unknown_setting", "There is no such setting, limit or key.", mend)
    return name


def _known_model(name: str, info: ValidationInfo) -> str:
    known = _around(info).models
    if name in known or name == _OFFLINE or ":" in name.strip(": "):
        return name
    near = get_close_matches(name, [*known, _OFFLINE], 1)
    other = "Name it under models, or write offline, openai:NAME or PROVIDER:NAME."
    mend = f"Did you mean {near[0]}?" if near else other
    raise refused("unknown_model", "No model has this name.", mend)


def _prompt(given: object, info: ValidationInfo) -> object:
    return prompt_text(given, _around(info).folder)


def _imported(given: object, info: ValidationInfo) -> Any:
    if not isinstance(given, str):
        raise refused("wrong_type", "This must be text.", "Write module:function.")
    around = _around(info)
    return imported(given, around.folder) if around.imports else named(given, around.folder)


def _function(given: object, info: ValidationInfo) -> Any:
    found = _imported(given, info)
    if not callable(found):
        reason = f"This is not a function but a {type(found).__name__}."
        raise refused("no_function", reason, "Name a function.")
    return found


def _runnable(given: object, info: ValidationInfo) -> Any:
    found = _imported(given, info)
    if not (callable(found) or hasattr(found, "ainvoke")):
        reason = f"This is neither a function nor a runnable but a {type(found).__name__}."
        raise refused("no_function", reason, "Name a function or a runnable.")
    return found


def _tool(given: object, info: ValidationInfo) -> Any:
    # A mapping is what a provider's own tool is called by, such as {type: web_search}.
    if isinstance(given, dict):
        return cast("Any", given)
    found = _imported(given, info)
    if not (callable(found) or hasattr(found, "ainvoke")):
        reason = f"This is neither a function nor a tool but a {type(found).__name__}."
        raise refused("no_function", reason, "Name a function or a LangChain tool.")
    return found


def _local(name: str, info: ValidationInfo) -> str:
    try:
        team = _around(info).local_team
    except ConfigurationError as error:
        raise refused("local_team", as_sentence(error.problem), error.mend) from error
    if name not in team:
        near = get_close_matches(name, team, 1)
        mend = f"Did you mean {near[0]}?" if near else f"Write one of: {', '.join(team)}."
        raise refused("unknown_local", "The local team has no such member.", mend)
    return name


def _server(url: str) -> str:
    if not re.match(r"https?://[^\s/]", url):
        mend = "Write it with http:// or https://, as in http://127.0.0.1:8000/v1."
        raise refused("bad_url", "This is not the address of a server.", mend)
    return url


def _variable(name: str) -> str:
    if not _VARIABLE.match(name):
        reason = "This is not the name of an environment variable in capital letters."
        raise refused("literal_secret", reason, SECRET_MEND)
    return name


def _workspace(given: object, info: ValidationInfo) -> Path:
    if not isinstance(given, str):
        raise refused("wrong_type", "This must be text.", "Write the name of a folder.")
    folder = _around(info).workspace
    if not folder.is_dir():
        mend = "Make it, or name another; it is relative to the team file."
        raise refused("no_folder", f"There is no folder '{folder}'.", mend)
    return folder


SpecialistName = Annotated[str, AfterValidator(_specialist_name)]
"""A name that a plan document can say as `@name`."""

Sentence = Annotated[str, AfterValidator(_not_blank)]
"""A text that is not blank."""

NewModel = Annotated[str, AfterValidator(_new_model)]
"""The name that the file gives to a model."""

ModelName = Annotated[str, AfterValidator(_known_model)]
"""A name under `models`, `offline`, or a provider's model."""

Prompt = Annotated[str, BeforeValidator(_prompt), WithJsonSchema(_PROMPT_SCHEMA)]
"""A text, or the content of a file beside the team file."""

Function = Annotated[Any, PlainValidator(_function), WithJsonSchema(_REFERENCE_SCHEMA)]
"""The function that `module:function` names."""

Runnable = Annotated[Any, PlainValidator(_runnable), WithJsonSchema(_REFERENCE_SCHEMA)]
"""The function or the LangChain runnable that `module:function` names."""

Tool = Annotated[Any, PlainValidator(_tool), WithJsonSchema(_TOOL_SCHEMA)]
"""The function or the LangChain tool that `module:function` names, or a provider's own tool."""

OpenField = Annotated[str, AfterValidator(_open_field)]
"""What a team may open to clients of a server."""

LocalMember = Annotated[str, AfterValidator(_local)]
"""A member of the built-in local team."""

ServerUrl = Annotated[str, AfterValidator(_server), WithJsonSchema(_URL_SCHEMA)]
"""The address of a server."""

VariableName = Annotated[str, AfterValidator(_variable), WithJsonSchema(_VARIABLE_SCHEMA)]
"""The name of an environment variable."""

Workspace = Annotated[Path, BeforeValidator(_workspace), WithJsonSchema({"type": "string"})]
"""A folder that is there."""
