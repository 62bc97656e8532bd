"""Stand-ins for models that cannot be built here: their team can be looked at, but not run."""

from dataclasses import dataclass, field
from typing import Any, NoReturn, Self

from langchain_core.language_models import BaseChatModel

from replan.base.errors import ConfigurationError, UsageError
from replan.ports.model_provider import ModelProvider


class _MissingModel(BaseChatModel):
    model_name: str
    problem: str

    @property
    def _llm_type(self) -> str:
        return "missing"

    def bind_tools(self, tools: Any, **_: Any) -> Self:
        return self

    def _generate(self, *_: Any, **__: Any) -> NoReturn:
        raise UsageError(self.problem)


@dataclass(frozen=True)
class StandIns:
    """Builds models by name, and a stand-in, whose calls fail, for each that cannot be built.

    Attributes:
        models: What builds them.
        missing: Why some cannot be built, and what to do; each once.
    """

    models: ModelProvider
    missing: dict[str, None] = field(default_factory=dict[str, None])

    def chat_model(self, name: str, *, tenant: str = "") -> BaseChatModel:
        """Return the model of a name, or its stand-in."""
        whose = {"tenant": tenant} if tenant else {}
        try:
            return self.models.chat_model(name, **whose)
        except ConfigurationError as error:
            bare_name = name.partition(":")[2] or name
            return _MissingModel(model_name=bare_name, problem=self._noted(error))

    def _noted(self, error: ConfigurationError) -> str:
        self.missing.update((f"{mistake.reason} {mistake.fix}", None) for mistake in error.mistakes)
        return str(error)
