"""The models of a team, with fallbacks: each is built once, and its mistakes name their owner."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from replan.base.errors import ConfigurationError, Mistake

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from replan.models.chat import Chat
    from replan.ports.model_provider import ModelProvider
    from replan.ports.tool_provider import ToolProvider


class Fallback:
    """Models that are called in turn until one replies; can be used wherever a model can.

    A busy model first gets its own retries. After a part of a reply was shown, no other model is
    called. Each call is reserved, counted and priced
    under the name of the model that is called; a warning reports the change of model.

    Attributes:
        models: The models, in the order in which they are asked.
    """

    def __init__(self, first: "BaseChatModel | str", *others: "BaseChatModel | str") -> None:
        """Put models into an order.

        Args:
            first: The model that is asked first, or its name.
            others: Those that are asked after it.
        """
        self.models: tuple[Any, ...] = (first, *others)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fallback) and self.models == other.models

    def __hash__(self) -> int:
        return hash(tuple(model if isinstance(model, str) else id(model) for model in self.models))

    def __str__(self) -> str:
        return ", else ".join(
            model if isinstance(model, str) else type(model).__name__ for model in self.models
        )

    def __repr__(self) -> str:
        return f"Fallback({', '.join(map(repr, self.models))})"


def models_in(model: Any) -> tuple[Any, ...]:
    """The models of a field: one, or those of a `Fallback`."""
    return model.models if isinstance(model, Fallback) else (model,)


def each_model(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every model in some fields, with the field that it is in."""
    for field, value in fields.items():
        for model in models_in(value):
            yield field, model


def with_fallbacks(name: str, fallbacks: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """A model and all its fallbacks of a file, each once."""
    names: dict[str, None] = {}
    left = [name]
    while left:
        next_ = left.pop(0)
        if next_ not in names:
            names[next_] = None
            left = [*fallbacks.get(next_, ()), *left]
    return tuple(names)


def _no_clock() -> datetime:
    raise RuntimeError("A team that is only looked at has no clock.")


class Chats:
    """One `Chat` for each model, so that a model that is given twice is recognised.

    Attributes:
        servers: The tool servers of the team, by their names.
        environment: Where the secrets are that jobs name.
        clock: Gives the time.
        mistakes: What was reported meanwhile, in the order of the team.
    """

    def __init__(
        self,
        provider: "ModelProvider",
        servers: "Mapping[str, ToolProvider] | None" = None,
        tenant: str = "",
        environment: "Mapping[str, str] | None" = None,
        clock: "Callable[[], datetime] | None" = None,
    ) -> None:
        self.servers = servers or {}
        self.environment = environment or {}
        self.clock = clock or _no_clock
        self.mistakes: list[Mistake] = []
        self._provider = provider
        # A provider without tenants is only asked without one.
        self._whose = {"tenant": tenant} if tenant else {}
        self._chats: dict[tuple[str | int, ...], Chat] = {}

    def of(self, model: Any, field: str = "model") -> "Chat":
        models = models_in(model)
        key = tuple(one if isinstance(one, str) else id(one) for one in models)
        if key not in self._chats:
            chat = None
            for one in reversed(models):
                chat = self._chat(one, field, chat)
            self._chats[key] = cast("Chat", chat)
        return self._chats[key]

    def built(self, models: Mapping[str, Any]) -> "dict[str, Chat]":
        """The chats of models by their fields; what cannot be built is reported, and left out."""
        chats: dict[str, Chat] = {}
        for field, model in models.items():
            with self.collecting():
                chats[field] = self.of(model, field)
        return chats

    @contextmanager
    def collecting(self) -> Generator[None]:
        """Keep the mistake that is found, once for each field, and continue."""
        try:
            yield
        except ConfigurationError as error:
            if error.field not in [mistake.field for mistake in self.mistakes]:
                self.mistakes += error.mistakes

    def _chat(self, model: Any, field: str, other: "Chat | None") -> "Chat":
        from replan.base.langgraph_inside.langchain import without_own_retries  # noqa: PLC0415 - it is LangChain's
        from replan.base.secrets.sources import learn_model  # noqa: PLC0415
        from replan.models.chat import Chat  # noqa: PLC0415

        name = model if isinstance(model, str) else ""
        try:
            built = self._provider.chat_model(name, **self._whose) if name else model
        except ConfigurationError as error:
            raise _at_field(field, error) from error
        learn_model(built)
        built, retries = without_own_retries(cast("BaseChatModel", built), _connections)
        return Chat(built, name, retries, other)


def _connections() -> Any:
    from replan.models.providers.model_http import LoopBoundClient  # noqa: PLC0415 - needs openai

    return LoopBoundClient()


def _at_field(field: str, error: ConfigurationError) -> ConfigurationError:
    """The error of a model, at the field that names it unless it stands under `models`."""
    return error if error.field.startswith("models.") else error.at(field)
