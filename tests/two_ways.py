"""One test, two ways: a model that follows a script in this process, or behind a server."""

from types import SimpleNamespace
from typing import Any

from replan.models.providers.chat_models import LangChainModels
from replan.testing import OpenAIServer, ScriptedModel


class OverHttp(OpenAIServer):
    """A script behind a server: what `ScriptedModel` is in this process."""

    def __enter__(self) -> Any:
        super().__enter__()
        chat = LangChainModels(base_url=self.base_url).chat_model("openai:m")
        return SimpleNamespace(chat=chat, server=self)


def calls_of(model: Any) -> list[Any]:
    """The calls that a model got, whichever way: their node, step and messages."""
    if isinstance(model, ScriptedModel):
        return list(model.calls)
    return [
        SimpleNamespace(node=each.call.node, step=each.call.step, messages=each.messages)
        for each in model.server.requests
    ]
