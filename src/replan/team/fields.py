"""The kinds of fields that a team has in addition to plain texts and numbers.

In Python a field is given what it holds; in a file, text that names it. One validator takes both:
where a file is read, its context is what is around the file.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, cast

from pydantic import (
    AfterValidator,
    BeforeValidator,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from replan.declared.fields import meant, name_like
from replan.declared.keys import FIX as KEY_FIX
from replan.declared.part import broken
from replan.declared.references import imported, name_in, named
from replan.declared.surroundings import Surroundings, refused
from replan.ports.built_in import built_in_models, comes_with_replan, is_built_in
from replan.ports.tool_provider import server_in
from replan.state.team import SpecialistCard
from replan.state.tightening import CAN_BE_OPENED
from replan.team.fallback import Fallback, in_order
from replan.team.knowledge_folder import FIELDS, folder_and_model
from replan.team.prompt_files import prompt_text
from replan.team.surroundings import TeamSurroundings

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage
    from langchain_core.tools import BaseTool

    from replan.ports.retriever import Retriever
    from replan.ports.specialist_port import SpecialistPort
    from replan.state.results import ExecutionContext

_REFERENCE = {"type": "string", "pattern": r"^[^\s:]+:[^\s:]+$", "examples": ["team_tools:search"]}
_GRANT = {"type": "string", "pattern": r"^[A-Za-z0-9_-]+/\S+$", "examples": ["git/*"]}
_TOOL = {"anyOf": [_REFERENCE, _GRANT, {"type": "object", "required": ["type"]}]}
_KNOWLEDGE = {"anyOf": [{"type": "string"}, FIELDS]}
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


def _around(info: ValidationInfo) -> TeamSurroundings | None:
    return cast("TeamSurroundings | None", info.context)


def sentence(text: str) -> str:
    if not text.strip():
        raise refused(
            "empty",
            "This is empty.",
            "Say in a sentence when to choose it; the planner reads this.",
        )
    return text


def open_field(name: str) -> str:
    if name not in CAN_BE_OPENED:
        known = sorted(CAN_BE_OPENED)
        fix = meant(name, known, f"Use some of: {', '.join(known)}.")
        raise refused("unknown_setting", "There is no such setting, limit or key.", fix)
    return name


def model(given: object, info: ValidationInfo) -> object:
    """Take a chat model, a name or a `Fallback`; in a file, a name that is known."""
    around = _around(info)
    if isinstance(given, Fallback) and around is None:
        if len(given.models) == 1:
            fix = "Name another model behind it, or give it alone."
            raise refused("no_fallback", "There is no other model in its place.", fix)
        return Fallback(*(one_model(each, info) for each in given.models))
    found = one_model(given, info)
    if around is None or not isinstance(found, str):
        return found
    names = in_order(found, around.fallbacks)
    return Fallback(*names) if len(names) > 1 else found


def one_model(given: object, info: ValidationInfo) -> Any:
    """Take a chat model or a name; in a file, a name that is known."""
    around = _around(info)
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
    around = _around(info)
    return given if around is None else prompt_text(given, around.folder)


def function(given: object, info: ValidationInfo) -> object:
    found = _named(given, info)
    if not callable(found) or hasattr(found, "ainvoke"):
        raise _not_callable(found, "Give a function.")
    return found


def work(given: object, info: ValidationInfo) -> object:
    """Take a function or a runnable, or in a file its name."""
    found = _named(given, info)
    if not callable(found) and not callable(getattr(found, "ainvoke", None)):
        raise _not_callable(found, "Give a function, a runnable or a graph.")
    return found


def tool(given: object, info: ValidationInfo) -> object:
    """Take a function or a LangChain tool, a tool of a server, or a provider's own tool."""
    if server_in(given):
        return given
    # A mapping such as {type: web_search}.
    found = cast("object", given) if isinstance(given, dict) else _named(given, info)
    if not isinstance(found, dict) and not callable(found) and not hasattr(found, "ainvoke"):
        raise _not_callable(found, "Give a function or a LangChain tool.")
    return cast("object", found)


def output_type(given: object, info: ValidationInfo) -> object:
    """Take a type that pydantic knows a JSON schema of, or in a file its name."""
    from replan.replies.shape import Shape  # noqa: PLC0415 - few teams have some

    found = _named(given, info)
    around = _around(info)
    if around is not None and not around.imports and not comes_with_replan(str(given)):
        return found
    try:
        Shape(found)
    except TypeError as error:
        reason = f"pydantic cannot make a JSON schema for it: {error}"
        fix = "Give a pydantic model, a dataclass, a TypedDict or a type such as list[Model]."
        raise refused("no_type", reason, fix) from error
    return found


def pipeline(given: object, info: ValidationInfo) -> object:
    """Take the class of an agent of a main thread, or in a file its name."""
    from replan.threads.base_agent import BaseAgent  # noqa: PLC0415 - few teams have some
    from replan.threads.state_handler import StateHandler  # noqa: PLC0415

    class NotImported(BaseAgent):
        """A placeholder for something that is not imported."""

        async def _initialize_state_handlers(self) -> None:
            self.state_handlers = {"not_imported": StateHandler(phase="not_imported")}

    found, around = _named(given, info), _around(info)
    if around is not None and not around.imports and not comes_with_replan(str(given)):
        return NotImported
    if not (isinstance(found, type) and issubclass(found, BaseAgent)):
        fix = "Give a subclass of BaseAgent: the class, not an instance."
        raise refused("no_pipeline", "This is not the class of a pipeline's main agent.", fix)
    return found


def callback(given: object, info: ValidationInfo) -> object:
    from replan.events import callbacks  # noqa: PLC0415 - few teams have some

    found = _named(given, info)
    if isinstance(found, type):
        fix = f"Give an instance: {found.__name__}()."
        raise refused("no_callback", "This is a class.", fix)
    wrong = [
        broken((name,), found, "no_hook", "There is no such hook.", f"Did you mean {hook}?")
        for name, hook in callbacks.misspelt_hooks(found).items()
    ]
    if wrong:
        raise ValidationError.from_exception_data("callback", wrong)
    if not callbacks.hooks_of(found) and not isinstance(found, callbacks.MultiAgentCallback):
        fix = (
            f"Give an object with some of: "
            f"{', '.join((*callbacks.HOOKS.values(), callbacks.ANY_EVENT))}. "
            "LangChain's callbacks go into the configuration of a run."
        )
        raise refused("no_callback", "It has none of the hooks.", fix)
    return found


def ready(given: object, info: ValidationInfo) -> object:
    """Take an object with a card and a way to run, or in a file its name."""
    return _ready(given, _around(info))


def card_of(given: object, around: Surroundings | None) -> SpecialistCard | None:
    """The card of a ready specialist; None if it is not one."""
    with suppress(PydanticCustomError):
        return cast("SpecialistPort", _ready(given, around)).card
    return None


def _ready(given: object, around: Surroundings | None) -> object:
    found: Any = _what(given, around)
    if isinstance(getattr(found, "card", None), SpecialistCard) and callable(found.run):
        return found
    reference = str(given)
    if around is not None and not around.imports and not comes_with_replan(reference):
        # What is not imported is known by its name alone.
        card = SpecialistCard(name=name_in(reference), intended_use=reference)
        return SimpleNamespace(card=card, run=found)
    reason = f"This is a {type(found).__name__}, not a specialist."
    raise refused("no_specialist", reason, "Name an object with a card and a way to run.")


def server(url: str) -> str:
    if not re.match(r"https?://[^\s/]", url):
        fix = "Write it with http:// or https://, as in http://127.0.0.1:8000/v1."
        raise refused("bad_url", "This is not the address of a server.", fix)
    return url


def variable(name: str) -> str:
    """Refuse what is not a name of a variable: it may be a key."""
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", name):
        reason = "This is not the name of an environment variable in capital letters."
        raise refused("literal_secret", reason, KEY_FIX)
    return name


def workspace(given: object, info: ValidationInfo) -> object:
    """Take a folder; in a file it is relative to the file, and must be there."""
    around = _around(info)
    if given is None or (around is None and isinstance(given, str | Path)):
        return around and around.workspace if given is None else Path(cast("str", given))
    if around is None or not isinstance(given, str):
        raise refused("wrong_type", "This must be text.", "Write the name of a folder.")
    if not around.workspace.is_dir():
        fix = "Create it, or name another folder; the path is relative to the team file."
        raise refused("no_folder", f"There is no folder '{around.workspace}'.", fix)
    return around.workspace


def knowledge(given: object, info: ValidationInfo) -> object:
    """Accept a folder or an object with a search; in a file, the name of one."""
    from replan.adapters.knowledge.folder import TENANT, FolderRetriever  # noqa: PLC0415 - rare

    around, model = _around(info), None
    if isinstance(given, dict):
        given, model = folder_and_model(cast("dict[str, object]", given))
    if isinstance(given, str | Path) and (model or around is None or not _is_reference(given)):
        folder = str(given if around is None else around.folder / given)
        if not folder.strip() or "\0" in folder:
            raise refused("no_folder", "This is not a folder.", "Write the name of a folder.")
        if around is not None and TENANT not in folder and not Path(folder).is_dir():
            fix = "Create it, or name another; it is relative to the team file."
            raise refused("no_folder", f"There is no folder '{folder}'.", fix)
        return FolderRetriever(Path(folder), embeddings=model)
    found: Any = _named(given, info)
    is_left_alone = around is not None and not around.imports
    if isinstance(found, type) or not (is_left_alone or callable(getattr(found, "search", None))):
        reason = f"It is of type {type(found).__name__}, and has no search."
        raise refused("no_retriever", reason, "Give a folder, or an object with a search.")
    return cast("object", found)


def _is_reference(given: object) -> bool:
    return re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", str(given)) is not None


def out(given: object, info: ValidationInfo) -> object:
    """Take a folder, which need not be there; in a file it is relative to the file."""
    around = _around(info)
    if around is None and (given is None or isinstance(given, str | Path)):
        return None if given is None else Path(given)
    if given is not None and (not isinstance(given, str) or "\0" in given):
        raise refused("wrong_type", "This must be text.", "Write the name of a folder.")
    if around is None or around.out is not None or given is None:
        return around and around.out
    return (around.folder / given).resolve()


def _named(given: object, info: ValidationInfo) -> object:
    return _what(given, _around(info))


def _what(given: object, around: Surroundings | None) -> object:
    """Return what a file names; in Python it is what is given."""
    if around is None:
        return given
    if not isinstance(given, str):
        raise refused("wrong_type", "This must be text.", "Write module:function.")
    if comes_with_replan(given):
        return imported(given, None)
    return imported(given, around.folder) if around.imports else named(given, around.folder)


def _is_chat_model(given: object) -> bool:
    from langchain_core.language_models import BaseChatModel  # noqa: PLC0415 - a name needs none

    return isinstance(given, BaseChatModel)


def _not_callable(found: object, fix: str) -> Exception:
    return refused(
        "no_function", f"It is of type {type(found).__name__}, and cannot be called.", fix
    )


NewModel = Annotated[
    str,
    AfterValidator(
        name_like(
            r"[A-Za-z0-9][\w.-]*",
            "This cannot be the name of a model.",
            "Use letters, digits, '_', '-' and '.'; 'offline' is the built-in model.",
            taken=built_in_models,
        )
    ),
]
"""The name that a file gives to a model."""

Name = Annotated[
    str,
    AfterValidator(
        name_like(
            r"[^\W_][\w-]*",
            "This cannot be the name of a specialist.",
            "Use letters, digits, '_' and '-', beginning with a letter or digit.",
        )
    ),
]
"""A name that a plan document can say as `@name`."""

Sentence = Annotated[str, AfterValidator(sentence)]
"""A text that is not blank."""

OpenField = Annotated[str, AfterValidator(open_field)]
"""What a team may open to clients of a server."""

ServerUrl = Annotated[
    str, AfterValidator(server), WithJsonSchema({"type": "string", "pattern": "^https?://"})
]
"""The address of a server."""

VariableName = Annotated[
    str,
    AfterValidator(variable),
    WithJsonSchema({"type": "string", "pattern": "^[A-Z_][A-Z0-9_]*$"}),
]
"""The name of an environment variable."""

# A type checker sees what Python gives; at run time no framework is imported for it.
if TYPE_CHECKING:
    Model = BaseChatModel | Fallback | str
    ModelName = str
    Prompt = str
    Function = Callable[..., Any]
    StepFunction = Callable[Concatenate[ExecutionContext, ...], Any]
    InputProcessor = Callable[[ExecutionContext], Any]
    OutputProcessor = Callable[[BaseMessage], Any]
    Work = Any
    Tool = BaseTool | Callable[..., Any] | dict[str, Any] | str
    Callback = object
    OutputType = Any
    PipelineAgent = Any
    ReadySpecialist = SpecialistPort
    Knowledge = Retriever | Path | str
    Workspace = Out = Path | str | None
else:
    Model = Annotated[Any, PlainValidator(model), WithJsonSchema({"type": "string"})]
    ModelName = Annotated[str, PlainValidator(one_model), WithJsonSchema({"type": "string"})]
    Prompt = Annotated[str, BeforeValidator(prompt), WithJsonSchema(_PROMPT)]
    Function = Annotated[Any, PlainValidator(function), WithJsonSchema(_REFERENCE)]
    InputProcessor = OutputProcessor = StepFunction = Function
    Work = Annotated[Any, PlainValidator(work), WithJsonSchema(_REFERENCE)]
    Tool = Annotated[Any, PlainValidator(tool), WithJsonSchema(_TOOL)]
    OutputType = Annotated[Any, PlainValidator(output_type), WithJsonSchema(_REFERENCE)]
    PipelineAgent = Annotated[Any, PlainValidator(pipeline), WithJsonSchema(_REFERENCE)]
    Callback = Annotated[Any, PlainValidator(callback), WithJsonSchema(_REFERENCE)]
    Knowledge = Annotated[Any, PlainValidator(knowledge), WithJsonSchema(_KNOWLEDGE)]
    ReadySpecialist = Annotated[Any, PlainValidator(ready), WithJsonSchema(_REFERENCE)]
    Workspace = Annotated[
        Path | None, PlainValidator(workspace), WithJsonSchema({"type": "string"})
    ]
    Out = Annotated[Path | None, PlainValidator(out), WithJsonSchema({"type": "string"})]
