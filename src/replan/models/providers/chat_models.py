"""Build chat models from names: OpenAI and compatible servers, built-in ones, LangChain's."""

import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr

from replan.base.errors import ConfigurationError
from replan.base.failures import describe
from replan.base.secrets.masking import without_secrets
from replan.ports.built_in import built_in_models

if TYPE_CHECKING:
    from replan.models.providers.model_http import LoopBoundClient

OPENAI_URL = "https://api.openai.com/v1"
_KEY = "OPENAI_API_KEY"
_URLS = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
_PLACEHOLDER = "not-needed"
_LONGEST_CONNECT = 10.0
# The packages of the providers that LangChain can build by name.
_PACKAGES = {
    "anthropic": "langchain_anthropic",
    "anthropic_bedrock": "langchain_aws",
    "azure_ai": "langchain_azure_ai",
    "azure_openai": "langchain_openai",
    "bedrock": "langchain_aws",
    "bedrock_converse": "langchain_aws",
    "cohere": "langchain_cohere",
    "deepseek": "langchain_deepseek",
    "fireworks": "langchain_fireworks",
    "google_genai": "langchain_google_genai",
    "google_vertexai": "langchain_google_vertexai",
    "groq": "langchain_groq",
    "huggingface": "langchain_huggingface",
    "ibm": "langchain_ibm",
    "litellm": "langchain_litellm",
    "mistralai": "langchain_mistralai",
    "nvidia": "langchain_nvidia_ai_endpoints",
    "ollama": "langchain_ollama",
    "openrouter": "langchain_openrouter",
    "perplexity": "langchain_perplexity",
    "together": "langchain_together",
    "upstage": "langchain_upstage",
    "xai": "langchain_xai",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class LangChainModels:
    """The models that LangChain knows, by name; all share one pool of connections.

    `offline` is the built-in model; `openai:NAME` and, with a base URL, a bare `NAME` are served
    over the OpenAI protocol; any other `provider:NAME` needs that provider's LangChain package,
    which takes its key and all else from its own settings: the fields below are for the OpenAI
    protocol.
    """

    # The server that speaks the OpenAI protocol; none: `OPENAI_BASE_URL` of the environment, else
    # OpenAI's own.
    base_url: str | None = None
    # The key for it; none: `OPENAI_API_KEY` of the environment.
    api_key: SecretStr | None = field(default=None, repr=False)
    # The variables to look in, handed in by the caller.
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    # Seconds to wait for the next bytes of a reply that is streamed. One that comes as a whole is
    # bounded by the caller: a step's `timeout`, `Limits.step_timeout`.
    timeout: float = 120.0
    # Further attempts after busy or failing servers, as long after as a `Retry-After` says.
    max_retries: int = 2
    streaming: bool = True  # whether the server can stream; if not, replies come in one piece

    def __repr__(self) -> str:
        """Show where calls go, without keys or the credentials of an address."""
        url = without_secrets(self.base_url or "") or None
        return f"{type(self).__name__}(base_url={url!r}, timeout={self.timeout:g})"

    def chat_model(self, name: str, *, tenant: str = "") -> BaseChatModel:
        if built_in := built_in_models().get(name):
            return _built_in_model(built_in.model)
        provider, colon, model = name.partition(":")
        if not name.strip() or (colon and not (provider and model.strip())):
            raise ConfigurationError("model", name, "no model has this name", _FORMS)
        provider = provider.lower().replace("-", "_")
        if colon and provider == "openai":
            return self._openai_model(name, model)
        if colon and provider in _PACKAGES:
            return _other_model(name, provider, model)
        if self._url is not None:
            # A colon may be part of a server's own name for a model, as in `llama3:8b`.
            return self._openai_model(name, name)
        problem = f"'{provider}' is not a known provider" if colon else "it names no provider"
        raise ConfigurationError("model", name, problem, _FORMS)

    def _openai_model(self, name: str, model: str) -> BaseChatModel:
        key, url = self._key(name), self._checked_url()

        import openai  # noqa: PLC0415 - only those who use it pay for its import

        from replan.models.providers.openai_chat import OpenAIChat  # noqa: PLC0415 - as above

        return OpenAIChat(
            model=model,
            base_url=url or OPENAI_URL,
            api_key=key,
            timeout=openai.Timeout(self.timeout, connect=min(_LONGEST_CONNECT, self.timeout)),
            stream_chunk_timeout=self.timeout,
            max_retries=self.max_retries,
            http_async_client=self._http,
            # Else LangChain's socket options keep its synchronous client from using a proxy.
            http_socket_options=(),
            # A compatible server sends no usage in a stream unless it is asked to.
            stream_usage=True,
            disable_streaming=not self.streaming,
            # LangChain sends some model names to an endpoint that only OpenAI itself has.
            use_responses_api=None if self._is_openai else False,
        )

    @cached_property
    def _http(self) -> "LoopBoundClient":
        from replan.models.providers.model_http import LoopBoundClient  # noqa: PLC0415 - needs openai

        return LoopBoundClient()

    @property
    def _url(self) -> str | None:
        urls = (self.environment.get(variable) for variable in _URLS)
        return self.base_url or next((url for url in urls if url), None)

    @property
    def _is_openai(self) -> bool:
        return (self._url or OPENAI_URL).rstrip("/") == OPENAI_URL

    def _checked_url(self) -> str | None:
        url = self._url
        if url is not None and not url.startswith(("http://", "https://")):
            problem = "this is not the address of a server"
            fix = "Write it with http:// or https://, as in http://127.0.0.1:8000/v1."
            raise ConfigurationError("base_url", without_secrets(url), problem, fix)
        return url

    def _key(self, name: str) -> SecretStr:
        if self.api_key is not None and self.api_key.get_secret_value():
            return self.api_key
        key = self.environment.get(_KEY)
        if not key and self._is_openai:
            problem = f"the key is missing: {_KEY} is not set"
            fix = f"Set {_KEY}, or the base URL of a server that needs no key."
            raise ConfigurationError("model", name, problem, fix)
        return SecretStr(key or _PLACEHOLDER)


_FORMS = (
    "Write offline, openai:NAME or PROVIDER:NAME; a bare NAME needs a base URL "
    "(OPENAI_BASE_URL) of a server that has it."
)


def _built_in_model(reference: str) -> BaseChatModel:
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)()


def _other_model(name: str, provider: str, model: str) -> BaseChatModel:
    package = _PACKAGES[provider]
    for needed in ("langchain", package):
        if importlib.util.find_spec(needed) is None:
            raise _missing(name, needed)

    from langchain.chat_models import init_chat_model  # noqa: PLC0415 - slow to import

    try:
        return init_chat_model(model, model_provider=provider)
    except Exception as error:
        # A foreign constructor: mostly a missing key, reported by its own exception.
        fix = f"Set what {package.replace('_', '-')} needs, as its documentation says."
        raise ConfigurationError("model", name, describe(error), fix) from error


def _missing(name: str, package: str) -> ConfigurationError:
    package = package.replace("_", "-")
    problem = f"the package {package} is not installed"
    wanted = '"replan[tools]"' if package == "langchain" else package
    return ConfigurationError("model", name, problem, f"Install it: pip install {wanted}.")
