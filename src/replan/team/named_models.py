"""The models of a team file: those with names of their own, and all others by their usual names."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr

from replan.adapters.models import OPENAI_URL, LangChainModels
from replan.errors import ConfigurationError, TeamFileError
from replan.team.mistakes import complain
from replan.team.sections import ModelSection
from replan.team.surroundings import as_sentence
from replan.team.yaml_source import Where, YamlSource

_WIRE = ("base_url", "api_key_env", "timeout", "max_retries", "streaming")
_OPTIONS = ("temperature", "top_p", "max_tokens", "seed")
_KEY = "OPENAI_API_KEY"


@dataclass(frozen=True, kw_only=True, eq=False)
class TeamModels:
    """Builds the models that a team file names; a key is looked up when its model is built.

    Attributes:
        path: The file.
        source: The file as values and places.
        named: The models under `models`.
        uses: For each other name of a model in the file, a place where it stands.
        environment: The variables to look in.
        base_url: The server for names that have none of their own.
    """

    path: Path
    source: YamlSource = field(repr=False)
    named: Mapping[str, ModelSection]
    uses: Mapping[str, Where] = field(default_factory=dict[str, Where], repr=False)
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    base_url: str | None = None

    def chat_model(self, name: str) -> BaseChatModel:
        """Give the model for a name under `models`, or for a name such as `openai:gpt-...`.

        Raises:
            TeamFileError: The file names a model that cannot be built, or whose key is missing.
            ConfigurationError: A name that the file does not have cannot be built.
        """
        section = self.named.get(name)
        where = ("models", name, "model") if section else self.uses.get(name)
        try:
            if section is None:
                return self._others.chat_model(name)
            return self._with_options(name, section, self._built(name, section))
        except ConfigurationError as error:
            if where is None:
                raise
            raise self._mistake(where, "model", as_sentence(error.problem), error.mend) from error

    @property
    def retries(self) -> Mapping[str, int]:
        """Further calls of one reply by the name of the model, where the file says how many."""
        return {
            name: section.max_retries
            for name, section in self.named.items()
            if section.max_retries is not None
        }

    @cached_property
    def _others(self) -> LangChainModels:
        return LangChainModels(base_url=self.base_url, environment=self.environment)

    def _built(self, name: str, section: ModelSection) -> BaseChatModel:
        given = {"timeout", "max_retries", "streaming"} & section.model_fields_set
        provider = LangChainModels(
            base_url=section.base_url or self.base_url,
            api_key=self._key(name, section),
            environment=self._environment(section),
            **{option: getattr(section, option) for option in given},
        )
        model = provider.chat_model(section.model)
        if type(model).__name__ != "OpenAIChat":
            self._refuse_wire(name, section)
        return model

    def _key(self, name: str, section: ModelSection) -> SecretStr | None:
        if section.api_key_env is None:
            return None
        key = self.environment.get(section.api_key_env)
        if not key:
            reason = f"The environment variable {section.api_key_env} is not set."
            mend = "Set it to the key, or name another variable."
            raise self._mistake(("models", name, "api_key_env"), "missing_key", reason, mend)
        return SecretStr(key)

    def _environment(self, section: ModelSection) -> Mapping[str, str]:
        """Keep the key for OpenAI from servers that the file names without a key."""
        if section.base_url is None or section.base_url.rstrip("/") == OPENAI_URL:
            return self.environment
        return {name: value for name, value in self.environment.items() if name != _KEY}

    def _refuse_wire(self, name: str, section: ModelSection) -> None:
        for option in _WIRE:
            if option in section.model_fields_set:
                reason = f"The model {section.model} does not use this."
                mend = "Leave it out; it is for openai:NAME and for servers with a base_url."
                raise self._mistake(("models", name, option), "unused_field", reason, mend)

    def _with_options(
        self, name: str, section: ModelSection, model: BaseChatModel
    ) -> BaseChatModel:
        options = {
            option: getattr(section, option)
            for option in _OPTIONS
            if option in section.model_fields_set
        }
        for option in options:
            if option not in type(model).model_fields:
                reason = f"The model {section.model} does not know this."
                raise self._mistake(
                    ("models", name, option), "unused_field", reason, "Leave it out."
                )
        return model.model_copy(update=options) if options else model

    def _mistake(self, where: Where, code: str, reason: str, mend: str) -> TeamFileError:
        return TeamFileError(self.path, [complain(self.source, where, code, reason, mend)])
