"""What a team is made of: the configuration that a developer writes."""

import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeGuard, cast, get_args

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from pydantic import ValidationError

from replan.errors import ConfigurationError
from replan.events.callbacks import (
    ANY_EVENT,
    HOOKS,
    MultiAgentCallback,
    hooks_of,
    misspelt_hooks,
)
from replan.events.hooks import SECONDS
from replan.graph.ways import FIELDS_OF_WAYS, WAYS
from replan.models.chat import ToolCallChecker, holds_tool_call
from replan.state.limits import (
    Budget,
    Limits,
    OnDoubt,
    OnFailure,
    Price,
    RoundScope,
    RunSettings,
)
from replan.state.questions import Approving
from replan.state.results import ExecutionContext, SpecialistResult
from replan.state.team import Effects, SpecialistCard
from replan.state.tightening import CAN_BE_OPENED

Calls = Literal["merged", "separate"]
"""Whether one call of the host may do the work of two."""

InputProcessor = Callable[[ExecutionContext], Sequence[BaseMessage] | Awaitable[Any]]
"""A function, sync or async, that makes messages; none mean those of the request."""

OutputProcessor = Callable[[BaseMessage], SpecialistResult | Awaitable[Any]]
"""A function, sync or async, that makes the result; a text or a message will do, too."""

Tool = BaseTool | Callable[..., Any] | dict[str, Any]
"""A LangChain tool, a function with a docstring, or what a provider's own tool is called by."""

_NAME = re.compile(r"[^\W_][\w-]*\Z")


@dataclass(frozen=True, kw_only=True)
class Host:
    """The host: who thinks, plans, judges and answers.

    Attributes:
        tool_calling_model: A chat model, or its name such as `openai:gpt-...`; it answers, and
            does everything else where no other model is given.
        thinking_model: Judges requests; else the model above.
        planning_model: Writes and revises plans, in calls of its own; else the thinking model.
        feedback_model: Judges results; else the thinking model.
        system_prompt: Precedes every prompt of the host.
        thinking_prompt: In the place of the built-in thinking prompt.
        planning_prompt: In the place of the built-in planning prompt, in calls of its own.
        reflection_prompt: In the place of the built-in feedback prompt.
        tools: What it may use for the answer to a simple request.
        max_tool_rounds: How often it may call tools before it must answer.
    """

    tool_calling_model: BaseChatModel | str
    thinking_model: BaseChatModel | str | None = None
    planning_model: BaseChatModel | str | None = None
    feedback_model: BaseChatModel | str | None = None
    system_prompt: str = ""
    thinking_prompt: str = ""
    planning_prompt: str = ""
    reflection_prompt: str = ""
    tools: Sequence[Tool] = ()
    max_tool_rounds: int = 25


@dataclass(frozen=True, kw_only=True)
class Specialist:
    """A member of the team; exactly one of `chat_model`, `invokable`/`streamable`, `run` does it.

    Attributes:
        name: Unique; letters, digits, `_` and `-`, so that a document can say `@name`.
        intended_use: When to choose it.
        capabilities: What it can do.
        chat_model: A chat model or its name.
        system_prompt: What the chat model is told first.
        tools: What the chat model may use; a tool that fails is told to it.
        max_tool_rounds: How often it may call tools, several at once count as one; without an
            answer after the last, the step fails.
        invokable: A LangChain runnable, a compiled graph or a function of the messages.
        streamable: The same, as a function that gives its answer in pieces (an iterator, sync or
            async) or a runnable that streams; preferred, and its pieces are shown as they come.
        run: A function, sync or async, of the `ExecutionContext`.
        input_processor: Makes the messages from the context, in the place of the prompt.
        output_processor: Makes the result from the last message.
        effects: What a second run of its work would do to the outside: `pure` nothing, `keyed`
            nothing as it hands the idempotency key on, `unsafe` its effect once more. With tools,
            it is said of each tool that does not say it itself. Left out: `pure` for a chat model,
            `keyed` for a function or a tool with a parameter `idempotency_key`, which is handed
            the key. All else counts as `unsafe`: tried again after an error, and asked about where
            it was cut off. A step that is declared `unsafe` is tried again only where its line
            says `retries`.
        approve: The names of tools that a person must approve, call by call.
        limits: What all its steps together may spend in one run.
    """

    name: str
    intended_use: str
    capabilities: Sequence[str] = ()
    chat_model: BaseChatModel | str | None = None
    system_prompt: str = ""
    tools: Sequence[Tool] = ()
    max_tool_rounds: int = 25
    invokable: Any = None
    streamable: Any = None
    run: Callable[..., Any] | None = None
    input_processor: InputProcessor | None = None
    output_processor: OutputProcessor | None = None
    effects: Effects | None = None
    approve: Sequence[str] = ()
    limits: Budget = field(default_factory=Budget)

    @property
    def card(self) -> SpecialistCard:
        """What the host sees of it."""
        return SpecialistCard(
            name=self.name,
            intended_use=self.intended_use,
            capabilities=tuple(self.capabilities),
            only_by_name=self.effects == "unsafe" or bool(self.approve) or self._has_unsafe_tools,
        )

    @property
    def _has_unsafe_tools(self) -> bool:
        """Whether a tool says of itself that it is unsafe."""
        said: list[Mapping[str, Any]] = [
            getattr(tool, "metadata", None) or {} for tool in self.tools
        ]
        return any(each.get("effects") == "unsafe" for each in said)


@dataclass(frozen=True, kw_only=True)
class MultiAgentConfig:
    """A team, and what its runs may do.

    Attributes:
        host: The host.
        specialists: The team; at least one.
        name: The name of the system.
        limits: The bounds of a run.
        round_scope: How far a round reaches.
        on_failure: What a final failure of a step does to the rest of its round.
        on_doubt: What becomes of unsafe work that was cut off, so that nobody knows what it did, or
            that was done and is to be done once more.
        calls: `merged` lets one call of the host do the work of two; `separate` never.
        complexity_threshold: A score at or above it means a plan, where the label is missing.
        plan_template: The shape of a plan in the prompts.
        thinking_prompt_template: The thinking prompt, where the host has none of its own.
        reflection_prompt_template: The feedback prompt, where the host has none of its own.
        allow_dynamic_update: Whether plans may be revised.
        approval: Which plans a person must approve before they run: `never`, the first `plan`,
            `revisions`, or `always` both.
        stream_tool_call_checker: Gets the pieces of an answer of a host with tools, and says
            whether they hold a tool call, so that their text is no answer yet. It may wait for as
            many pieces as it needs; what it has not decided is not shown.
        callbacks: Objects with some of the hooks of a `MultiAgentCallback`.
        hook_timeout: Seconds after which a hook of a callback is left alone.
        workspace: The folder that specialists may read and write.
        out: The folder for the files that they make; else the workspace.
        prices: What models cost for each million tokens, by the name that they were configured
            with or that their provider gives them.
        open_to_clients: Settings (`approval`), limits (`max_seconds`) and keys of the state
            (`current_specialist_results`) that clients of a server may loosen or edit; of all
            others they can only tighten settings, and edit the conversation and the plan.
    """

    host: Host
    specialists: Sequence[Specialist]
    name: str = "replan"
    limits: Limits = field(default_factory=Limits)
    round_scope: RoundScope = "plan"
    on_failure: OnFailure = "finish"
    on_doubt: OnDoubt = "ask"
    calls: Calls = "merged"
    complexity_threshold: float = 0.5
    plan_template: str = ""
    thinking_prompt_template: str = ""
    reflection_prompt_template: str = ""
    allow_dynamic_update: bool = True
    approval: Approving = "never"
    stream_tool_call_checker: ToolCallChecker = holds_tool_call
    callbacks: Sequence[object] = ()
    hook_timeout: float = SECONDS
    workspace: Path | str | None = None
    out: Path | str | None = None
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    open_to_clients: Sequence[str] = ()

    @property
    def settings(self) -> RunSettings:
        """What a run may do, where its request does not say."""
        return RunSettings(
            limits=self.limits,
            round_scope=self.round_scope,
            on_failure=self.on_failure,
            on_doubt=self.on_doubt,
            complexity_threshold=self.complexity_threshold,
            allow_dynamic_update=self.allow_dynamic_update,
            approval=self.approval,
        )

    def check(self) -> None:
        """Refuse a configuration that no graph can be built from.

        Raises:
            ConfigurationError: Names the field, the value and the mend.
        """
        _check_team(self.specialists)
        _check_choices(self)
        _check_callbacks(self)
        _check_host(self.host)
        seen: dict[str, int] = {}
        for index, specialist in enumerate(self.specialists):
            _check_specialist(f"specialists[{index}]", specialist, seen)
            seen[specialist.name.casefold()] = index


def _check_team(specialists: object) -> None:
    if not _is_row(specialists):
        fix = "Give a list: specialists=[Specialist(...)]."
        raise ConfigurationError("specialists", specialists, "this is no list", fix)
    if not specialists:
        fix = "Give at least one Specialist."
        raise ConfigurationError("specialists", [], "the team is empty", fix)
    for index, specialist in enumerate(specialists):
        if not isinstance(specialist, Specialist):
            fix = "Give Specialist(name=..., intended_use=..., ...)."
            raise ConfigurationError(
                f"specialists[{index}]", specialist, "this is no Specialist", fix
            )


def _check_choices(config: MultiAgentConfig) -> None:
    if config.calls not in get_args(Calls):
        mend = f"Use one of: {', '.join(get_args(Calls))}."
        raise ConfigurationError("calls", config.calls, "there is no such way", mend)
    try:
        _ = config.settings
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ConfigurationError(
            field, first["input"], first["msg"], "See MultiAgentConfig."
        ) from error
    if not callable(cast("object", config.stream_tool_call_checker)):
        problem, mend = "it cannot be called", "Give a function of the pieces of a reply."
        raise ConfigurationError(
            "stream_tool_call_checker", config.stream_tool_call_checker, problem, mend
        )
    # pydantic takes a mapping for the bounds; what reads them here wants the value itself.
    if not isinstance(cast("object", config.limits), Limits):
        raise ConfigurationError(
            "limits", config.limits, "these are no Limits", "Give Limits(...)."
        )
    _check_opened(config.open_to_clients)
    for name, price in config.prices.items():
        if not isinstance(cast("object", price), Price):
            mend = "Give Price(input=..., output=...), for each million tokens."
            raise ConfigurationError(f"prices[{name!r}]", price, "this is no Price", mend)


def _check_opened(opened: Sequence[str]) -> None:
    if not _is_row(opened):
        mend = "Give a list: open_to_clients=[...]."
        raise ConfigurationError("open_to_clients", opened, "this is no list", mend)
    for name in opened:
        if name not in CAN_BE_OPENED:
            mend = f"Use some of: {', '.join(sorted(CAN_BE_OPENED))}."
            raise ConfigurationError("open_to_clients", name, "there is no such field", mend)


def _check_callbacks(config: MultiAgentConfig) -> None:
    seconds = cast("object", config.hook_timeout)
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not 0 < config.hook_timeout < math.inf:
        mend = "Give seconds, more than 0."
        raise ConfigurationError("hook_timeout", seconds, "this is no such time", mend)
    if not _is_row(config.callbacks):
        mend = "Give a list: callbacks=[...]."
        raise ConfigurationError("callbacks", config.callbacks, "this is no list", mend)
    for index, callback in enumerate(config.callbacks):
        _check_callback(f"callbacks[{index}]", callback)


def _check_callback(place: str, callback: object) -> None:
    if isinstance(callback, type):
        mend = f"Give an instance: {callback.__name__}()."
        raise ConfigurationError(place, callback, "this is a class", mend)
    for name, meant in misspelt_hooks(callback).items():
        mend = f"Did you mean {meant}?"
        raise ConfigurationError(f"{place}.{name}", callback, "there is no such hook", mend)
    if not hooks_of(callback) and not isinstance(callback, MultiAgentCallback):
        mend = (
            f"Give an object with some of: {', '.join((*HOOKS.values(), ANY_EVENT))}. "
            "LangChain's callbacks go into the configuration of a run."
        )
        raise ConfigurationError(place, callback, "it has none of the hooks", mend)


def _is_row(value: object) -> TypeGuard[Sequence[object]]:
    """Whether a value is a sequence of several things, and no text."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _check_host(host: Host) -> None:
    models = {
        "tool_calling_model": host.tool_calling_model,
        "thinking_model": host.thinking_model,
        "planning_model": host.planning_model,
        "feedback_model": host.feedback_model,
    }
    for name, model in models.items():
        is_missing = model is None and name == "tool_calling_model"
        if is_missing or not isinstance(cast("object", model), BaseChatModel | str | None):
            mend = "Give a LangChain chat model, or a name such as 'openai:NAME'."
            raise ConfigurationError(f"host.{name}", model, "this is no chat model", mend)
    _check_rounds("host", host.max_tool_rounds)


def _check_specialist(place: str, specialist: Specialist, seen: dict[str, int]) -> None:
    name = specialist.name
    if not isinstance(cast("object", name), str) or not _NAME.match(name):
        mend = "Use letters, digits, '_' and '-', beginning with a letter or digit."
        raise ConfigurationError(f"{place}.name", name, "this is no name for a specialist", mend)
    if name.casefold() in seen:
        problem = f"specialists[{seen[name.casefold()]}] has this name already"
        raise ConfigurationError(f"{place}.name", name, problem, "Give each its own name.")
    use = cast("object", specialist.intended_use)
    if not isinstance(use, str) or not use.strip():
        problem = "it is empty" if isinstance(use, str) else "it is no text"
        mend = "Say in a sentence when to choose it; the planner reads this."
        raise ConfigurationError(f"{place}.intended_use", use, problem, mend)
    for row in ("capabilities", "tools", "approve"):
        if not _is_row(value := getattr(specialist, row)):
            mend = f"Give a list: {row}=[...]."
            raise ConfigurationError(f"{place}.{row}", value, "this is no list", mend)
    if specialist.effects not in (None, *get_args(Effects)):
        mend = f"Use one of: {', '.join(get_args(Effects))}."
        raise ConfigurationError(f"{place}.effects", specialist.effects, "it is unknown", mend)
    _check_ways(place, specialist)


def _check_ways(place: str, specialist: Specialist) -> None:
    streamable = specialist.streamable
    ways = {
        "chat_model": specialist.chat_model,
        "invokable": streamable if specialist.invokable is None else specialist.invokable,
        "run": specialist.run,
    }
    given = [way for way, value in ways.items() if value is not None]
    if len(given) != 1:
        problem = "it has no way to work" if not given else "it has more than one way to work"
        mend = "Give exactly one of chat_model, invokable (or streamable), run."
        raise ConfigurationError(place, given or specialist.name, problem, mend)
    for way in ("invokable", "streamable", "run"):
        value = getattr(specialist, way)
        works = callable(value) and not isinstance(value, Runnable)
        if way != "run":
            works = works or isinstance(value, Runnable)
        if value is not None and not works:
            mend = "Give a function" + ("." if way == "run" else ", a runnable or a graph.")
            problem = "it cannot be called"
            raise ConfigurationError(f"{place}.{way}", cast("object", value), problem, mend)
    if specialist.approve and not specialist.tools:
        mend = "Name tools that stand in `tools`."
        raise ConfigurationError(f"{place}.approve", specialist.approve, "it has no tools", mend)
    if specialist.tools and specialist.chat_model is None:
        mend = "Give a chat_model that uses them, or hand them to what does the work."
        raise ConfigurationError(f"{place}.tools", given[0], "nobody here uses tools", mend)
    _check_used(place, specialist, given[0])
    if not isinstance(cast("object", specialist.limits), Budget):
        problem, mend = "this is no Budget", "Give Budget(...)."
        raise ConfigurationError(f"{place}.limits", specialist.limits, problem, mend)
    _check_rounds(place, specialist.max_tool_rounds)


def _check_used(place: str, specialist: Specialist, way: str) -> None:
    """Refuse what this way to work would leave out in silence."""
    unused = FIELDS_OF_WAYS.difference(WAYS[way])
    for each in fields(Specialist):
        value = getattr(specialist, each.name)
        if each.name in unused and value != each.default:
            problem = f"a specialist with {way} does not use this"
            raise ConfigurationError(f"{place}.{each.name}", value, problem, "Leave it out.")


def _check_rounds(place: str, rounds: int) -> None:
    if rounds < 1:
        mend = "Give 1 or more."
        raise ConfigurationError(f"{place}.max_tool_rounds", rounds, "it is too small", mend)
