"""Tests of the models that names stand for."""

import sys

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from replan.errors import ConfigurationError
from replan.models.providers.chat_models import LangChainModels

LOCAL = "http://127.0.0.1:9/v1"


def opened(model: BaseChatModel) -> ChatOpenAI:
    assert isinstance(model, ChatOpenAI)
    return model


def key_of(model: BaseChatModel) -> object:
    key = opened(model).openai_api_key
    return key.get_secret_value() if isinstance(key, SecretStr) else key


def test_offline_is_the_built_in_model_also_where_a_base_url_is_set():
    for provider in (LangChainModels(), LangChainModels(base_url=LOCAL)):
        assert type(provider.chat_model("offline")).__name__ == "OfflineModel"


def test_the_process_environment_is_not_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "from-the-process")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere/v1")
    monkeypatch.setenv("LANGSMITH_GATEWAY", "true")

    with pytest.raises(ConfigurationError):
        LangChainModels().chat_model("openai:gpt-x")
    model = opened(LangChainModels(environment={"OPENAI_API_KEY": "k"}).chat_model("openai:gpt-x"))

    assert key_of(model) == "k"
    assert model.openai_api_base == "https://api.openai.com/v1"


@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "OPENAI_API_BASE"])
def test_the_base_url_may_stand_in_the_environment(variable: str):
    model = opened(LangChainModels(environment={variable: LOCAL}).chat_model("tiny"))

    assert model.openai_api_base == LOCAL


def test_a_key_of_ours_goes_before_the_environments():
    environment = {"OPENAI_API_KEY": "theirs"}

    assert key_of(LangChainModels(environment=environment).chat_model("openai:x")) == "theirs"
    ours = LangChainModels(environment=environment, api_key=SecretStr("ours"))
    assert key_of(ours.chat_model("openai:x")) == "ours"


@pytest.mark.parametrize("environment", [{}, {"OPENAI_API_KEY": ""}])
def test_a_missing_key_names_its_variable(environment: dict[str, str]):
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY") as caught:
        LangChainModels(environment=environment).chat_model("openai:gpt-x")

    assert caught.value.field == "model"
    assert caught.value.value == "'openai:gpt-x'"


def test_openais_own_address_needs_its_key_also_where_it_is_written_out():
    url = "https://api.openai.com/v1/"
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        LangChainModels(base_url=url).chat_model("gpt-x")

    model = LangChainModels(base_url=url, api_key=SecretStr("k")).chat_model("gpt-x")
    assert opened(model).use_responses_api is None


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("tiny", "tiny"),
        ("openai:tiny", "tiny"),
        ("openai:llama3:8b", "llama3:8b"),
        ("llama3:8b", "llama3:8b"),
        ("org/model.v1", "org/model.v1"),
        ("org.x/model:free", "org.x/model:free"),
    ],
)
def test_a_server_of_ones_own_gets_its_own_names(name: str, model: str):
    assert opened(LangChainModels(base_url=LOCAL).chat_model(name)).model_name == model


@pytest.mark.parametrize("name", ["gpt-x", "nobody:x", "", "  ", "openai:", "openai: ", ":x"])
def test_unknown_forms_are_refused_with_their_mend(name: str):
    with pytest.raises(ConfigurationError, match="openai:NAME") as caught:
        LangChainModels(environment={"OPENAI_API_KEY": "k"}).chat_model(name)

    assert caught.value.field == "model"
    assert caught.value.value == repr(name)


def test_a_package_that_is_missing_is_named():
    with pytest.raises(ConfigurationError, match="pip install langchain-groq"):
        LangChainModels().chat_model("groq:llama")


def test_a_missing_langchain_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "langchain", None)
    with pytest.raises(ConfigurationError, match=r'pip install "replan\[tools\]"'):
        LangChainModels().chat_model("groq:llama")


def test_another_provider_is_known_also_where_a_base_url_is_set():
    with pytest.raises(ConfigurationError, match="pip install langchain-mistralai"):
        LangChainModels(base_url=LOCAL).chat_model("mistralai:large")


def test_what_another_provider_complains_of_is_told(monkeypatch: pytest.MonkeyPatch):
    for variable in ("AZURE_OPENAI_API_KEY", "OPENAI_API_KEY", "OPENAI_API_VERSION"):
        monkeypatch.delenv(variable, raising=False)

    with pytest.raises(ConfigurationError, match="Set what langchain-openai needs") as caught:
        LangChainModels().chat_model("azure_openai:gpt-x")

    assert caught.value.__cause__ is not None


@pytest.mark.parametrize("url", ["localhost:8000/v1", "ftp://host/v1", "host"])
def test_an_address_without_its_scheme_is_refused(url: str):
    with pytest.raises(ConfigurationError, match="http://") as caught:
        LangChainModels(base_url=url).chat_model("tiny")

    assert caught.value.field == "base_url"


def test_nothing_secret_is_shown():
    provider = LangChainModels(
        base_url="https://user:word@host/v1",
        api_key=SecretStr("hidden"),
        environment={"OPENAI_API_KEY": "hidden"},
    )
    shown = repr(provider) + repr(provider.chat_model("tiny"))

    assert "hidden" not in shown
    assert "word" not in repr(provider)
    assert "host" in repr(provider)


def test_all_models_of_a_provider_share_their_connections():
    provider = LangChainModels(base_url=LOCAL)
    one, two = opened(provider.chat_model("a")), opened(provider.chat_model("b"))

    assert one.http_async_client is two.http_async_client
