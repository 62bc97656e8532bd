"""What LangChain's chat models keep to themselves."""

from collections.abc import Callable
from typing import Any

from langchain_core.language_models import BaseChatModel


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
