"""What LangChain's chat models keep to themselves."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from langchain_core.callbacks import AsyncCallbackManager
from langchain_core.language_models import BaseChatModel, chat_models
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig

from replan.base.langgraph_inside.callbacks import handlers_of

ASKS_NO_OTHER = "asks_no_other_model"
"""What a class of models says of itself, not of those that are made of it, by a true attribute."""


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


async def whole_reply(
    model: Runnable[Any, AIMessage], messages: Sequence[BaseMessage], config: RunnableConfig
) -> AIMessage:
    """Ask a model for a whole reply.

    A fifth of the work that LangChain does for a call is for callbacks. Where there are none, be it
    of the call, of the model or of the whole program, a model is asked as LangChain asks it inside.
    A model that asks others in its call hands callbacks on to them, so that is not left out.
    """
    asks_no_other = vars(type(model)).get(ASKS_NO_OTHER, False)
    if not asks_no_other or _is_heard(cast("BaseChatModel", model), config):
        return await model.ainvoke([*messages], config)
    inside: Any = model
    result = await inside._agenerate_with_cache(_normalised([*messages]))  # noqa: SLF001
    return result.generations[0].message


_normalised = cast("Any", chat_models)._normalize_messages  # noqa: SLF001


def _is_heard(model: BaseChatModel, config: RunnableConfig) -> bool:
    """Whether a callback hears a call; LangChain knows those of the whole program."""
    others = AsyncCallbackManager.configure(None, model.callbacks, verbose=model.verbose)
    handlers = (*handlers_of(config), *others.handlers)
    return not all(each.ignore_llm and each.ignore_chat_model for each in handlers)


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
