"""The host: it thinks, plans, judges and answers."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, cast

from pydantic import BaseModel, Field

from replan.base.declared.part import Row
from replan.state.knowledge import RAGOptions
from replan.state.options import MemoryOptions
from replan.team.fields.code import Tool, Typed
from replan.team.fields.models import Model, Prompt, models_of

Judging = Literal["always", "when_needed"]
"""When the host judges the results of a plan."""


class Host(Typed):
    """The host thinks, plans, judges and answers.

    Attributes:
        model: A chat model, or its name (a name under models, offline, openai:NAME or
            PROVIDER:NAME). It answers, and does everything without its own model.
        thinking_model: Judges requests; by default the model.
        planning_model: Writes and revises plans, in separate calls; by default the thinking_model.
        feedback_model: Judges results; by default the thinking_model.
        system_prompt: Precedes every prompt of the host.
        thinking_prompt: Replaces the built-in thinking prompt.
        planning_prompt: Replaces the built-in planning prompt, in separate calls.
        reflection_prompt: Replaces the built-in feedback prompt.
        tools: What it may use for the answer to a simple request: functions, LangChain tools, tools
            of tool_servers (files/read_file, git/*), or the name of a tool of the provider.
        max_tool_rounds: How often it may call tools before it must answer.
        output_type: The type of the answer: a pydantic model, a dataclass, a TypedDict, or of
            several such as list[Model]; in a team file as module:name. An answer of another type is
            requested again, then the run fails.
        judge: Whether it judges the results of every plan (always), or only where the rules leave
            something to judge (when_needed): if every step succeeded at once and the plan named the
            step that answers, this step's result is the answer, without another call.
        early_steps: Whether steps begin while the plan is still being written, where their
            specialist is declared pure and no plan waits for approval. The host's replies are
            streamed for that.
        structured_output: Whether its judgements are requested as JSON that the provider enforces,
            where the model's profile says that it can. Then an answer is not streamed.
        remembers: Whether it has the tools remember, recall and forget, for facts that outlive a
            conversation, where it may use its tools. Each run names their user in its settings.
        memory: What it sees of the earlier conversation, if this differs from the team.
        rag: Which knowledge it receives for the answer to a simple request, if this differs from
            the team.
    """

    old_names: ClassVar[Mapping[str, str]] = {"tool_calling_model": "model"}

    model: Model = Field(kw_only=False, examples=["offline", "openai:gpt-5-mini"])
    thinking_model: Model | None = None
    planning_model: Model | None = None
    feedback_model: Model | None = None
    system_prompt: Prompt = ""
    thinking_prompt: Prompt = ""
    planning_prompt: Prompt = ""
    reflection_prompt: Prompt = ""
    tools: Row[Tool] = ()
    max_tool_rounds: int = Field(default=25, ge=1)
    judge: Judging = "always"
    early_steps: bool = True
    structured_output: bool = False
    remembers: bool = False
    memory: MemoryOptions = Field(default_factory=MemoryOptions)
    rag: RAGOptions = Field(default_factory=RAGOptions)

    @property
    def chat_models(self) -> Mapping[str, Any]:
        """Its models, by their fields."""
        return models_of(self)


NO_HOST: Host = cast("Any", BaseModel.model_construct).__func__(Host, model=None)
"""In the place of the host of a team that has none."""

MODELS = tuple(name for name in Host.model_fields if name.endswith("model"))
"""The fields of a host that hold a model."""
