"""What LangChain's chat models and tools keep to themselves."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, Tool


def can_call_tools(model: BaseChatModel) -> bool:
    """Whether a model has its own way to take tools; LangChain's only raises."""
    return type(model).bind_tools is not BaseChatModel.bind_tools


def is_of_openai(model: BaseChatModel) -> bool:
    """Whether a model speaks through a client of the OpenAI protocol."""
    return hasattr(model, "root_async_client")


def streams_itself(model: BaseChatModel) -> bool:
    """Whether a model streams its reply where it is asked for a whole one."""
    is_set = "streaming" in model.model_fields_set and getattr(model, "streaming", None) is True
    return is_set and model.disable_streaming is not True


def provider_of(model: BaseChatModel) -> str:
    """What LangChain calls the provider of a model; empty if it does not know."""
    # Its providers override this; LangChain tells it callbacks only.
    return model._get_ls_params().get("ls_provider") or ""  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]


def without_own_retries(
    model: BaseChatModel, connections: Callable[[], Any] | None = None
) -> tuple[BaseChatModel, int]:
    """Turn off the hidden retries of a model's client.

    Args:
        model: The model.
        connections: Returns an HTTP client that can be used from several event loops. It takes the
            place of LangChain's default one, which belongs to the loop that used it first.
    """
    # Whoever asks the model is to make them, so that each of them is a call that limits know of.
    # Only clients of the OpenAI protocol let them be taken; any other model is given back as it is.
    waiting: Any = getattr(model, "root_async_client", None)
    direct: Any = getattr(model, "root_client", None)
    if not hasattr(waiting, "with_options"):
        return model, 0
    retries: int = waiting.max_retries
    changes: dict[str, Any] = {}
    for prefix, client in (("async_", waiting), ("", direct)):
        if client is not None:
            is_shared = client is waiting and connections and _has_default_connections(model)
            options = {"http_client": connections()} if connections and is_shared else {}
            patient = client.with_options(max_retries=0, **options)
            changes |= {
                f"root_{prefix}client": patient,
                f"{prefix}client": patient.chat.completions,
            }
    return model.model_copy(update=changes), retries


def _has_default_connections(model: BaseChatModel) -> bool:
    """Whether nobody has said how a model's client connects."""
    names = ("http_async_client", "http_socket_options", "openai_proxy")
    return not any(getattr(model, name, None) for name in names)


def with_schema(tool: BaseTool, schema: Any, metadata: dict[str, Any]) -> BaseTool:
    """Return a tool with other arguments for the model to see."""
    twin = tool.model_copy()
    twin.metadata = metadata
    # Assigned, not copied in: LangChain forgets by it what it has computed of the old schema.
    twin.args_schema = schema
    return twin


def runs_in_thread(tool: BaseTool) -> bool:
    """Whether LangChain runs a tool in its own thread, since it has no coroutine."""
    if getattr(tool, "coroutine", None) is not None:
        return False
    owner = next(kind for kind in type(tool).__mro__ if "_arun" in vars(kind))
    return owner in (BaseTool, StructuredTool, Tool)


class _StandIn:
    """A tool in all but how it is called: LangGraph asks for nothing else of the one of a call."""

    def __init__(
        self, tool: BaseTool, work: Callable[[Any, RunnableConfig], Awaitable[Any]]
    ) -> None:
        self._tool = tool
        self._work = work

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tool, name)

    async def ainvoke(self, input: Any, config: RunnableConfig, **_: Any) -> Any:  # noqa: A002 - LangChain's name
        return await self._work(input, config)


def called_by(tool: BaseTool, work: Callable[[Any, RunnableConfig], Awaitable[Any]]) -> BaseTool:
    """Return a replacement for a tool in one call, which does `work` with its input instead."""
    return cast("BaseTool", _StandIn(tool, work))


class ServerTool(BaseTool):
    """A tool of a server: a call of it is a call of the server."""

    provider: Any
    tool: str  # its name at the server

    def _run(self, **_: Any) -> Any:
        raise NotImplementedError("the tools of servers are asynchronous")

    # Its arguments may have any names, `self` among them.
    async def _arun(self, /, **arguments: Any) -> Any:
        return await self.provider.execute(self.tool, arguments)
