"""What a process gives: the time, random ids, and models with the keys of its environment."""

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from secrets import token_hex

from replan.base.secrets.sources import learn_environment
from replan.models.providers.chat_models import LangChainModels
from replan.ports.model_provider import ModelProvider

now: Callable[[], datetime] = partial(datetime.now, UTC)
random_id: Callable[[], str] = partial(token_hex, 16)


def models_from_environment(
    base_url: str | None = None, environment: Mapping[str, str] = os.environ
) -> ModelProvider:
    """Build models by name, with keys from the environment."""
    learn_environment(environment)
    return LangChainModels(base_url=base_url, environment=environment)


def chosen_models(models: ModelProvider | None, base_url: str | None) -> ModelProvider:
    """Give the given models, else those of the environment, whose secrets are known from now on."""
    of_environment = models_from_environment(base_url)
    return models or of_environment
