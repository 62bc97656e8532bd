"""The models of a team file: those with their own names, and all others by their usual names."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr

from replan.base.errors import ConfigurationError
from replan.models.providers.chat_models import OPENAI_URL, LangChainModels
from replan.team.file_team import NamedModel, Use

_KEY = "OPENAI_API_KEY"


@dataclass(frozen=True, kw_only=True, eq=False)
class TeamModels:
    """Builds the models that a team file names; a key is looked up when its model is built."""

    named: Mapping[str, NamedModel]  # the models under `models`
    # The variables to look in.
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    base_url: str | None = None  # the server for names that have none of their own

    def chat_model(self, name: str, *, tenant: str = "") -> BaseChatModel:
        """Return the model for a name under `models`, or for a name such as `openai:gpt-...`."""
        section = self.named.get(name)
        if section is None:
            return self._others.chat_model(name)
        try:
            return _with_options(section, self._built(section))
        except ConfigurationError as error:
            raise error.at(f"models.{name}.{error.field}") from error

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

    def _provider(self, section: NamedModel) -> LangChainModels:
        return LangChainModels(
            base_url=section.base_url or self.base_url,
            api_key=self._key(section),
            environment=self._environment(section),
            **section.given(Use.CALL),
        )

    def _built(self, section: NamedModel) -> BaseChatModel:
        model = self._provider(section).chat_model(section.model)
        if type(model).__name__ != "OpenAIChat":
            fix = "Leave it out; it is for openai:NAME and for servers with a base_url."
            of_server = {"base_url", "api_key_env"} & section.model_fields_set
            for option in (*sorted(of_server, reverse=True), *section.given(Use.CALL)):
                raise _unused(section, option, fix)
        return model

    def _key(self, section: NamedModel) -> SecretStr | None:
        if section.api_key_env is None:
            return None
        name = section.api_key_env
        key = self.environment.get(name)
        if not key:
            problem = f"the environment variable {name} is not set"
            fix = "Set it to the key, or name another variable."
            raise ConfigurationError("api_key_env", name, problem, fix, "missing_key")
        return SecretStr(key)

    def _environment(self, section: NamedModel) -> Mapping[str, str]:
        """Keep the key for OpenAI from servers that the file names without a key."""
        if section.base_url is None or section.base_url.rstrip("/") == OPENAI_URL:
            return self.environment
        return {name: value for name, value in self.environment.items() if name != _KEY}


def _with_options(section: NamedModel, model: BaseChatModel) -> BaseChatModel:
    options = section.given(Use.REPLY)
    for option in options.keys() - type(model).model_fields.keys():
        raise _unused(section, option, "Leave it out.")
    return model.model_copy(update=options) if options else model


def _unused(section: NamedModel, option: str, fix: str) -> ConfigurationError:
    problem = f"the model {section.model} does not use this"
    return ConfigurationError(option, getattr(section, option), problem, fix, "unused_field")
