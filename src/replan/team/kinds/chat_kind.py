"""A specialist that is a chat model with a prompt, and tools if it is given some."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field
from pydantic_core import InitErrorDetails

from replan.base.declared.part import FlagOrNames, Row, rule_error
from replan.state.team import SpecialistCard
from replan.team.chats import Chats
from replan.team.fields.code import Tool
from replan.team.fields.models import Model
from replan.team.kinds.member import Answering

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from replan.ports.specialist_port import SpecialistPort
    from replan.prompts.replies.shape import Shape
    from replan.specialists.prompted import PromptedSpecialist
    from replan.state.results import ExecutionContext


class Chat(Answering):
    """A specialist that is a chat model.

    Attributes:
        chat_model: A chat model, or its name: a name under models, offline, openai:NAME or
            PROVIDER:NAME.
        tools: What its chat_model may use: functions, LangChain tools, tools of tool_servers
            (files/read_file, git/*), or the name of a tool of the provider. The
            model is told if a tool fails.
        max_tool_rounds: How often it may call tools. Parallel calls count as one. Without
            an answer after the last round, the step fails.
        approve: The names of tools that a person must approve, call by call. Tools of servers may
            be named by a pattern: files/write_file, git/*. With true, a person must approve each
            of its steps before it begins.
        step_models: Other chat models that a step may have by name, (model fast), instead of its
            chat_model.
        remembers: Whether its chat_model has the tools remember, recall and forget, for facts that
            outlive a conversation. Each run names their user in its settings.
    """

    marks: ClassVar[tuple[str, ...]] = ("chat_model",)

    chat_model: Model | None = None
    tools: Row[Tool] = ()
    max_tool_rounds: int = Field(default=25, ge=1)
    approve: FlagOrNames = False
    step_models: Mapping[str, Model] = Field(default_factory=dict[str, Any])
    remembers: bool = False

    @classmethod
    def broken_rules(cls, fields: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
        """Approval is about tools."""
        if (
            fields.get("approve") not in (None, True)
            and fields["approve"]
            and not (fields.get("tools") or fields.get("remembers"))
        ):
            fix = "Name tools of the field tools."
            yield rule_error(("approve",), fields["approve"], "no_tools", "It has no tools.", fix)
        yield from super().broken_rules(fields)

    @property
    def _declared_effects(self) -> list[str | None]:
        """The effects that each tool declares itself; None where it declares none."""
        metadata: list[Mapping[str, Any]] = [getattr(one, "metadata", {}) for one in self.tools]
        return [(entry or {}).get("effects") for entry in metadata]

    @property
    def must_be_named(self) -> bool:
        """Whether a tool must be approved, or says itself that it is unsafe."""
        return "unsafe" in self._declared_effects or super().must_be_named

    @property
    def begins_early(self) -> bool:
        """Whether its steps may begin before their plan is complete; so with tools if all are pure.

        What a tool of a server changes outside is not known before it is called.
        """
        if self.remembers or self.approve or self.queue:
            return False
        if not self.tools:
            return super().begins_early
        is_pure = all((effects or self.effects) == "pure" for effects in self._declared_effects)
        return is_pure and not any(isinstance(tool, str) for tool in self.tools)

    @property
    def card(self) -> SpecialistCard:
        """The card that the host sees, with the models that its steps may name."""
        return super().card.replace(models=tuple(self.step_models))

    @property
    def chat_models(self) -> Mapping[str, Any]:
        """The chat models that it is given, by their fields."""
        others = {f"step_models.{name}": model for name, model in self.step_models.items()}
        return {**super().chat_models, **others}

    def built(self, location: str, chats: Chats) -> "SpecialistPort":
        """Build the model with its prompt and its tools, and the same with each other model."""
        usual = self._built_with(
            chats.of(self.chat_model, f"{location}.chat_model"), location, chats
        )
        if not self.step_models:
            return usual
        others = {
            name: self._built_with(
                chats.of(model, f"{location}.step_models.{name}"), location, chats
            )
            for name, model in self.step_models.items()
        }
        return WithStepModels(usual, others)

    def _built_with(self, chat: Any, location: str, chats: Chats) -> "PromptedSpecialist":
        from replan.specialists.given_tools import chat_with_tools
        from replan.specialists.prompted import PromptedSpecialist

        answer = chat_with_tools(
            f"{location}.tools",
            chat,
            self.tools,
            servers=chats.servers,
            max_rounds=self.max_tool_rounds,
            effects=self.effects or "unsafe",
            approve=self.approved_tools,
            remembers=self.remembers,
        ).reply
        return PromptedSpecialist(
            # Each of its tools has its own effects, and each call is recorded.
            card=self.card if self.tools or self.remembers else self.card_with("pure"),
            answer=answer,
            can_answer_again=True,
            **self.answering,
        )


@dataclass(frozen=True)
class WithStepModels:
    """A specialist whose steps may name another of its chat models."""

    usual: "PromptedSpecialist"
    others: "Mapping[str, PromptedSpecialist]"

    @property
    def card(self) -> SpecialistCard:
        """What the host sees of it."""
        return self.usual.card

    @property
    def shape(self) -> "Shape | None":
        """The type of its results, or None."""
        return self.usual.shape

    async def run(self, context: "ExecutionContext", config: "RunnableConfig") -> Any:
        """Do a step with the model that it names; a name is checked before the step starts."""
        name = context.plan_step.model
        return await (self.others[name] if name else self.usual).run(context, config)
