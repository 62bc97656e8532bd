"""The source of chat models."""

from typing import Protocol

from langchain_core.language_models import BaseChatModel


class ModelProvider(Protocol):
    """Builds the chat model of a name."""

    def chat_model(self, name: str, *, tenant: str = "") -> BaseChatModel:
        """Return the model for a name such as `openai:gpt-...` or `offline`, once for each graph.

        Args:
            name: The name, as it is in the team.
            tenant: For whom the graph is built, as passed to `build_graph`; empty without one.

        Raises:
            replan.errors.ConfigurationError: The name is unknown, or its key is missing.
        """
        ...
