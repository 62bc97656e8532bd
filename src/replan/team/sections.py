"""The sections of a team file; their descriptions are what an editor shows."""

from typing import Any, Literal

from pydantic import ConfigDict, Field

from replan.plan.model import Value
from replan.state.limits import Budget, Limits, OnDoubt, OnFailure, Price, RoundScope
from replan.state.questions import Approving
from replan.state.team import Effects
from replan.team.fields import (
    Function,
    LocalMember,
    ModelName,
    NewModel,
    OpenField,
    Prompt,
    Runnable,
    Sentence,
    ServerUrl,
    SpecialistName,
    Tool,
    VariableName,
    Workspace,
)

_WAYS_SCHEMA: dict[str, Any] = {
    "allOf": [
        {"anyOf": [{"required": ["local"]}, {"required": ["name", "intended_use"]}]},
        {
            "oneOf": [
                {"required": ["chat_model"]},
                {"anyOf": [{"required": ["invokable"]}, {"required": ["streamable"]}]},
                {"required": ["run"]},
                {"required": ["local"]},
            ]
        },
    ]
}


class ModelSection(Value):
    """A model with a name of its own."""

    model: str = Field(
        min_length=1,
        description="Which model: openai:NAME, PROVIDER:NAME, offline, or with a base_url NAME.",
        examples=["openai:gpt-5-mini", "offline"],
    )
    base_url: ServerUrl | None = Field(
        default=None,
        description="A server that speaks the OpenAI protocol. Without it: OPENAI_BASE_URL of "
        "the environment, else OpenAI itself.",
        examples=["http://127.0.0.1:8000/v1"],
    )
    api_key_env: VariableName | None = Field(
        default=None,
        description="The name of the environment variable that holds the key, never the key. "
        "Without it: OPENAI_API_KEY, and none for a base_url of its own.",
        examples=["OPENAI_API_KEY"],
    )
    temperature: float | None = Field(
        default=None, ge=0, le=2, description="How freely it words its replies."
    )
    top_p: float | None = Field(
        default=None, gt=0, le=1, description="The share of likely words that it chooses from."
    )
    max_tokens: int | None = Field(default=None, ge=1, description="The longest reply, in tokens.")
    seed: int | None = Field(default=None, description="Makes replies repeatable, if it can.")
    timeout: float | None = Field(
        default=None, gt=0, description="Seconds to wait for the next bytes of a reply."
    )
    max_retries: int | None = Field(
        default=None, ge=0, description="Further tries after busy or failing servers."
    )
    streaming: bool | None = Field(default=None, description="Whether the server can stream.")


class HostSection(Value):
    """The host: who thinks, plans, judges and answers."""

    tool_calling_model: ModelName = Field(
        description="Answers, and does everything else where no other model is given: a name "
        "under models, offline, openai:NAME or PROVIDER:NAME.",
        examples=["offline", "openai:gpt-5-mini"],
    )
    thinking_model: ModelName | None = Field(
        default=None, description="Judges requests; else the tool_calling_model."
    )
    planning_model: ModelName | None = Field(
        default=None,
        description="Writes and revises plans, in calls of its own; else the thinking_model.",
    )
    feedback_model: ModelName | None = Field(
        default=None, description="Judges results; else the thinking_model."
    )
    system_prompt: Prompt = Field(default="", description="Precedes every prompt of the host.")
    thinking_prompt: Prompt = Field(
        default="", description="In the place of the built-in thinking prompt."
    )
    planning_prompt: Prompt = Field(
        default="",
        description="In the place of the built-in planning prompt, in calls of its own.",
    )
    reflection_prompt: Prompt = Field(
        default="", description="In the place of the built-in feedback prompt."
    )
    tools: list[Tool] = Field(
        default_factory=list[Any],
        description="What it may use for the answer to a simple request: functions or LangChain "
        "tools as module:function.",
    )
    max_tool_rounds: int = Field(
        default=25, ge=1, description="How often it may call tools before it must answer."
    )


class SpecialistSection(Value):
    """A member of the team; one of chat_model, invokable or streamable, run, local does it."""

    model_config = ConfigDict(json_schema_extra=_WAYS_SCHEMA)

    name: SpecialistName | None = Field(
        default=None,
        description="Unique; letters, digits, _ and -, so that a plan can say @name. A member "
        "of the local team has one already.",
    )
    intended_use: Sentence | None = Field(
        default=None, description="When to choose it; the planner reads this."
    )
    capabilities: list[str] = Field(
        default_factory=list[str], description="What it can do, in a few words each."
    )
    chat_model: ModelName | None = Field(
        default=None,
        description="A name under models, offline, openai:NAME or PROVIDER:NAME.",
    )
    system_prompt: Prompt = Field(default="", description="What the model is told first.")
    tools: list[Tool] = Field(
        default_factory=list[Any],
        description="What its chat_model may use: functions or LangChain tools as module:function.",
    )
    max_tool_rounds: int = Field(
        default=25, ge=1, description="How often it may call tools before the step fails."
    )
    run: Function = Field(
        default=None,
        description="A function of the ExecutionContext that gives text, as module:function.",
    )
    invokable: Runnable = Field(
        default=None,
        description="A LangChain runnable, a compiled graph or a function of the messages, as "
        "module:name.",
    )
    streamable: Runnable = Field(
        default=None,
        description="The same as an async iterator or a runnable that streams; preferred.",
    )
    input_processor: Function = Field(
        default=None,
        description="A function that makes the messages from the ExecutionContext.",
    )
    output_processor: Function = Field(
        default=None, description="A function that makes the result from the last message."
    )
    local: LocalMember | None = Field(
        default=None,
        description="A member of the built-in local team, which needs no model.",
        examples=["data_analyst", "librarian", "calculator", "writer"],
    )
    effects: Effects | None = Field(
        default=None,
        description="What a second run of its work would do outside: pure nothing, keyed nothing "
        "as it hands the idempotency key on, unsafe its effect once more.",
    )
    approve: list[str] = Field(
        default_factory=list[str],
        description="The names of tools that a person must approve, call by call.",
    )
    limits: Budget = Field(
        default_factory=Budget, description="What all its steps together may spend in one run."
    )


class TeamSection(Value):
    """A team of specialists with a host that plans for them."""

    name: str = Field(default="replan", min_length=1, description="The name of the system.")
    host: HostSection = Field(description="Who thinks, plans, judges and answers.")
    models: dict[NewModel, ModelSection] = Field(
        default_factory=dict[str, ModelSection],
        description="Models by names of your own, for the host and the specialists.",
    )
    specialists: list[SpecialistSection] = Field(
        min_length=1, description="The members of the team; at least one."
    )
    limits: Limits = Field(default_factory=Limits, description="The bounds of a run.")
    prices: dict[str, Price] = Field(
        default_factory=dict[str, Price],
        description="What models cost, by their names under models or at their provider.",
    )
    round_scope: RoundScope = Field(
        default="plan",
        description="How far a round reaches: all remaining steps, those that are ready, or one.",
    )
    on_failure: OnFailure = Field(
        default="finish",
        description="After a final failure of a step: let independent ones finish, or halt.",
    )
    on_doubt: OnDoubt = Field(
        default="ask",
        description="What becomes of unsafe work that was cut off: ask a person, or fail it.",
    )
    calls: Literal["merged", "separate"] = Field(
        default="merged",
        description="merged lets one call of the host do the work of two; separate never.",
    )
    complexity_threshold: float = Field(
        default=0.5, ge=0, le=1, description="A request scored at or above it gets a plan."
    )
    plan_template: Prompt = Field(default="", description="The shape of a plan in the prompts.")
    thinking_prompt_template: Prompt = Field(
        default="", description="The thinking prompt, where the host has none of its own."
    )
    reflection_prompt_template: Prompt = Field(
        default="", description="The feedback prompt, where the host has none of its own."
    )
    allow_dynamic_update: bool = Field(default=True, description="Whether plans may be revised.")
    approval: Approving = Field(
        default="never",
        description="Which plans a person must approve before they run: the first plan, "
        "revisions of it, always both, or never.",
    )
    open_to_clients: list[OpenField] = Field(
        default_factory=list[str],
        description="Settings, limits and keys of the state that clients of a server may loosen "
        "or edit; else they only tighten what the team has.",
        examples=[["max_seconds"]],
    )
    stream_tool_call_checker: Function = Field(
        default=None,
        description="A function that tells from the first pieces of an answer of a host with "
        "tools whether they hold a tool call.",
    )
    workspace: Workspace | None = Field(
        default=None,
        description="The folder that specialists may read and write, relative to this file; "
        "else the folder of this file.",
        examples=["."],
    )
