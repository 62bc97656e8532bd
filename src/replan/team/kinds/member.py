"""What every specialist has, whatever does its steps."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from replan.base.declared.part import FlagOrNames, Part, Row
from replan.state.knowledge import RAGOptions
from replan.state.limits import Budget
from replan.state.options import MemoryOptions
from replan.state.team import Effects, SpecialistCard
from replan.team.fields.code import InputProcessor, OutputProcessor, Typed
from replan.team.fields.models import Prompt, models_of
from replan.team.fields.texts import Name, Sentence

if TYPE_CHECKING:
    from replan.ports.specialist_port import SpecialistPort
    from replan.team.chats import Chats


class Member(Part):
    """A member of a team.

    Attributes:
        name: Unique; letters, digits, _ and -, so that a plan can say @name.
        intended_use: When to choose it; the planner reads this.
        capabilities: What it can do, in a few words each.
        effects: What a repetition of its work changes outside: nothing (pure), nothing because the
            work passes on the idempotency key (keyed), or the effect happens again (unsafe). With
            tools, it applies to each tool without its own declaration. The default is pure for
            a chat model, and keyed for a function or a tool with a parameter idempotency_key, which
            receives the key. Other work is treated as unsafe: it is attempted again after an error,
            and a person is asked if it was cut off. A step that is declared unsafe is attempted
            again only if its line says retries.
        approve: Whether a person must approve each of its steps before it begins. The question
            shows the step, its inputs, and the effects of the work.
        limits: What all its steps together may use in one run.
        memory: What it sees of the earlier conversation, if this differs from the team: mode and
            history_limit. The settings of summaries belong to the host.
        rag: Which knowledge its steps receive, if this differs from the team.
        queue: The queue whose workers do its steps, on other machines, with other keys. Without
            workers (replan run, a server without --queue) its steps are done like any other.
    """

    marks: ClassVar[tuple[str, ...]] = ()
    """The fields that say that a specialist is of this kind: one of them must be given."""

    name: Name = Field(kw_only=False)
    intended_use: Sentence = Field(kw_only=False)
    capabilities: Row[str] = ()
    effects: Effects | None = None
    approve: FlagOrNames = False
    limits: Budget = Field(default_factory=Budget)
    memory: MemoryOptions = Field(default_factory=MemoryOptions)
    rag: RAGOptions = Field(default_factory=RAGOptions)
    queue: str = Field(default="", pattern=r"^([a-z0-9][a-z0-9_-]{0,19})?$")

    @property
    def card(self) -> SpecialistCard:
        """The card that the host sees."""
        return SpecialistCard(
            name=self.name,
            intended_use=self.intended_use,
            capabilities=tuple(self.capabilities),
            only_by_name=self.effects == "unsafe" or self.must_be_named,
            asks_first=self.approve is True,
        )

    @property
    def must_be_named(self) -> bool:
        """Whether its work must be done only if a plan names it."""
        return bool(self.approve)

    @property
    def begins_early(self) -> bool:
        """Whether its steps may begin before their plan is complete: it changes nothing outside."""
        return self.effects == "pure" and not (self.approve or self.queue)

    @property
    def approved_tools(self) -> tuple[str, ...]:
        """The tools that a person must approve, call by call."""
        return () if isinstance(self.approve, bool) else tuple(self.approve)

    @property
    def chat_models(self) -> Mapping[str, Any]:
        """The chat models that it is given, by their fields."""
        return models_of(self)

    def card_with(self, effects: Effects) -> SpecialistCard:
        """Return its card, with the effects that it declares, else with these."""
        declared = self.effects is not None
        return self.card.replace(effects=self.effects or effects, is_declared=declared)

    def built(self, location: str, chats: "Chats") -> "SpecialistPort":
        """Build the specialist that does its steps.

        Args:
            location: The path of this specialist, for mistakes.
            chats: The models of the team.

        Raises:
            ConfigurationError: Something that it names cannot be used.
        """
        raise NotImplementedError


class Giving(Member, Typed):
    """A member whose results may be of a type.

    Attributes:
        output_type: The type of its results: a pydantic model, a dataclass, a TypedDict, or of
            several such as list[Model]; in a file as module:name. A chat model that gives another
            thing is asked again; then the attempt fails.
    """


class Answering(Giving):
    """A member that answers messages.

    Attributes:
        system_prompt: The beginning of its prompt.
        input_processor: A function that makes the messages from the ExecutionContext, instead of
            the prompt.
        output_processor: A function that makes the result from the last message.
    """

    system_prompt: Prompt = ""
    input_processor: InputProcessor | None = None
    output_processor: OutputProcessor | None = None

    @property
    def answering(self) -> dict[str, Any]:
        """How it makes messages and results."""
        names = ("system_prompt", "input_processor", "output_processor")
        return {"shape": self.shape} | {name: getattr(self, name) for name in names}
