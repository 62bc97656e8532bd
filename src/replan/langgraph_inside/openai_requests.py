"""Requests of the OpenAI protocol that are sent as LangChain wrote them."""

from typing import Any

from langchain_core.language_models import BaseChatModel

from replan.langgraph_inside.models import is_of_openai


def quick_to_ask(model: BaseChatModel) -> BaseChatModel:
    """A model whose client does not read the large parts of a request; any other as it is."""
    if not is_of_openai(model):
        return model

    from openai.resources.chat import AsyncCompletions  # noqa: PLC0415 - such a model has loaded it

    class Unread(AsyncCompletions):
        """Sends messages and tools, which are JSON already, without looking at them.

        The client compares every part of a request with its type, to rename what has another name
        in JSON. In messages and tools nothing has, and looking takes half of the functions that a
        call needs. What stands in the extra body is sent unread.
        """

        async def create(self, *, extra_body: Any = None, **request: Any) -> Any:
            parts = {name: request[name] for name in ("messages", "tools") if request.get(name)}
            # Whoever watches the client's methods still finds a list.
            shown = {**request, **dict.fromkeys(parts, ())}
            ask: Any = super().create
            return await ask(**shown, extra_body={**parts, **(extra_body or {})})

    asked: Any = model
    if type(asked.async_client) is not AsyncCompletions:
        return model
    return model.model_copy(update={"async_client": Unread(asked.root_async_client)})
