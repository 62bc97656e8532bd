"""The callbacks of a LangChain configuration: which there are, and more of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config


def handlers_of(config: RunnableConfig) -> list[BaseCallbackHandler]:
    """The callbacks of a configuration, or of what runs right now."""
    given = config.get("callbacks")
    callbacks = (ensure_config().get("callbacks") if given is None else given) or []
    return callbacks.handlers if isinstance(callbacks, BaseCallbackManager) else callbacks


def with_handlers(
    config: RunnableConfig,
    handlers: Sequence[BaseCallbackHandler],
    *,
    tags: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
) -> RunnableConfig:
    """Give a node's configuration with more callbacks, tags and metadata.

    LangChain's `merge_configs` fills both sides up from the surroundings first. What a node gets
    is whole already, and there is a merge around each call of a model.
    """
    callbacks = config.get("callbacks")
    if isinstance(callbacks, BaseCallbackManager):
        callbacks = callbacks.copy()
        for handler in handlers:
            callbacks.add_handler(handler, inherit=True)
    else:
        callbacks = [*(callbacks or []), *handlers]
    return {
        **config,
        "callbacks": callbacks,
        "tags": [*config.get("tags", []), *tags],
        "metadata": {**config.get("metadata", {}), **(metadata or {})},
    }
