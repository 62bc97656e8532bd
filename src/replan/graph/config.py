"""What a team is made of: the configuration that a developer writes."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from replan.errors import ConfigurationError
from replan.state.limits import Limits, OnFailure, RoundScope, RunSettings
from replan.state.results import ExecutionContext, SpecialistResult
from replan.state.team import SpecialistCard

InputProcessor = Callable[[ExecutionContext], Sequence[BaseMessage]]
OutputProcessor = Callable[[BaseMessage], SpecialistResult]

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
    """

    tool_calling_model: BaseChatModel | str
    thinking_model: BaseChatModel | str | None = None
    planning_model: BaseChatModel | str | None = None
    feedback_model: BaseChatModel | str | None = None
    system_prompt: str = ""
    thinking_prompt: str = ""
    planning_prompt: str = ""
    reflection_prompt: str = ""


@dataclass(frozen=True, kw_only=True)
class Specialist:
    """A member of the team; exactly one of `chat_model`, `invokable`/`streamable`, `run` does it.

    Attributes:
        name: Unique; letters, digits, `_` and `-`, so that a document can say `@name`.
        intended_use: When to choose it.
        capabilities: What it can do.
        chat_model: A chat model or its name.
        system_prompt: What the chat model is told first.
        invokable: A LangChain runnable, a compiled graph or a function of the messages.
        streamable: The same, as an async iterator or a runnable that streams; preferred.
        run: A function, sync or async, of the `ExecutionContext`.
        input_processor: Makes the messages from the context, in the place of the prompt.
        output_processor: Makes the result from the last message.
    """

    name: str
    intended_use: str
    capabilities: Sequence[str] = ()
    chat_model: BaseChatModel | str | None = None
    system_prompt: str = ""
    invokable: Any = None
    streamable: Any = None
    run: Callable[..., Any] | None = None
    input_processor: InputProcessor | None = None
    output_processor: OutputProcessor | None = None

    @property
    def card(self) -> SpecialistCard:
        """What the host sees of it."""
        return SpecialistCard(
            name=self.name, intended_use=self.intended_use, capabilities=tuple(self.capabilities)
        )


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
        calls: `merged` lets one call of the host do the work of two; `separate` never.
        complexity_threshold: A score at or above it means a plan, where the label is missing.
        plan_template: The shape of a plan in the prompts.
        thinking_prompt_template: The thinking prompt, where the host has none of its own.
        reflection_prompt_template: The feedback prompt, where the host has none of its own.
        allow_dynamic_update: Whether plans may be revised.
        callbacks: Objects with some of the eight hooks, called in this order.
        workspace: The folder that specialists may read and write.
    """

    host: Host
    specialists: Sequence[Specialist]
    name: str = "replan"
    limits: Limits = field(default_factory=Limits)
    round_scope: RoundScope = "plan"
    on_failure: OnFailure = "finish"
    calls: Literal["merged", "separate"] = "merged"
    complexity_threshold: float = 0.5
    plan_template: str = ""
    thinking_prompt_template: str = ""
    reflection_prompt_template: str = ""
    allow_dynamic_update: bool = True
    callbacks: Sequence[object] = ()
    workspace: Path | str | None = None

    @property
    def settings(self) -> RunSettings:
        """What a run may do, where its request does not say."""
        return RunSettings(
            limits=self.limits,
            round_scope=self.round_scope,
            on_failure=self.on_failure,
            complexity_threshold=self.complexity_threshold,
            allow_dynamic_update=self.allow_dynamic_update,
        )

    def check(self) -> None:
        """Refuse a configuration that no graph can be built from.

        Raises:
            ConfigurationError: Names the field, the value and the mend.
        """
        if not self.specialists:
            raise ConfigurationError(
                "specialists", [], "the team is empty", "Give at least one Specialist."
            )
        seen: dict[str, int] = {}
        for index, specialist in enumerate(self.specialists):
            _check_specialist(f"specialists[{index}]", specialist, seen)
            seen[specialist.name.casefold()] = index


def _check_specialist(place: str, specialist: Specialist, seen: dict[str, int]) -> None:
    name = specialist.name
    if not _NAME.match(name):
        mend = "Use letters, digits, '_' and '-', beginning with a letter or digit."
        raise ConfigurationError(f"{place}.name", name, "this is no name for a specialist", mend)
    if name.casefold() in seen:
        problem = f"specialists[{seen[name.casefold()]}] has this name already"
        raise ConfigurationError(f"{place}.name", name, problem, "Give each its own name.")
    if not specialist.intended_use.strip():
        mend = "Say in a sentence when to choose it; the planner reads this."
        raise ConfigurationError(f"{place}.intended_use", "", "it is empty", mend)
    ways = {
        "chat_model": specialist.chat_model,
        "invokable": specialist.invokable or specialist.streamable,
        "run": specialist.run,
    }
    given = [way for way, value in ways.items() if value is not None]
    if len(given) != 1:
        problem = "it has no way to work" if not given else "it has more than one way to work"
        mend = "Give exactly one of chat_model, invokable (or streamable), run."
        raise ConfigurationError(place, given or name, problem, mend)
