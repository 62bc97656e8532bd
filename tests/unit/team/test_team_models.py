"""The models of a team file: keys by name, no key for the wrong server, options that arrive."""

import pytest
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from replan.assembly.graphs import build_graph
from replan.errors import ConfigurationError, TeamFileError
from replan.ports.model_provider import ModelProvider
from replan.state.limits import Budget, Price

URL = "http://127.0.0.1:9/v1"
KEYS = {"OPENAI_API_KEY": "open-key", "OTHER_KEY": "other-key"}


@pytest.fixture
def model_of(read, minimal):
    """Build the model of a team file whose `models` has one, called `own`."""

    def build(fields, environment=KEYS, name="own", base_url=None):
        team = read(f"{minimal}models: {{own: {{{fields}}}}}\n", environment)
        provider: ModelProvider = team.with_model(base_url=base_url).models
        return provider.chat_model(name)

    return build


@pytest.fixture
def refusal(read, minimal):
    def refusal_of(fields, environment=KEYS):
        team = read(
            f"{minimal.replace('offline', 'own')}models: {{own: {{{fields}}}}}\n", environment
        )
        with pytest.raises(TeamFileError) as caught:
            build_graph(team.config, models=team.models)
        (mistake,) = caught.value.mistakes
        return mistake

    return refusal_of


def key_of(model):
    assert isinstance(model, ChatOpenAI)
    assert isinstance(model.openai_api_key, SecretStr)
    return model.openai_api_key.get_secret_value()


def test_a_named_model_has_its_options(model_of):
    model = model_of(
        f"model: llama3, base_url: '{URL}', temperature: 0.2, top_p: 0.5, max_tokens: 99, seed: 7, "
        "timeout: 5, max_retries: 0, streaming: false"
    )

    assert (model.model_name, model.openai_api_base) == ("llama3", URL)
    assert (model.temperature, model.top_p, model.max_tokens, model.seed) == (0.2, 0.5, 99, 7)
    assert (model.max_retries, model.disable_streaming) == (0, True)
    assert model.request_timeout.read == 5


def test_the_key_comes_from_the_variable_that_is_named(model_of):
    assert key_of(model_of("model: 'openai:gpt-x', api_key_env: OTHER_KEY")) == "other-key"
    assert key_of(model_of(f"model: x, base_url: '{URL}', api_key_env: OTHER_KEY")) == "other-key"
    assert key_of(model_of("model: 'openai:gpt-x'")) == "open-key"


def test_the_key_for_openai_is_not_sent_to_a_server_of_ones_own(model_of):
    assert key_of(model_of(f"model: x, base_url: '{URL}'")) == "not-needed"
    openai = "model: 'openai:x', base_url: 'https://api.openai.com/v1'"
    assert key_of(model_of(openai)) == "open-key"


def test_a_key_that_is_missing_is_told_where_the_file_names_it(refusal):
    mistake = refusal("model: 'openai:x', api_key_env: NOT_SET")

    assert (mistake.code, mistake.field) == ("missing_key", "models.own.api_key_env")
    assert (mistake.line, mistake.column) == (7, 48)
    assert "NOT_SET is not set" in mistake.reason


def test_a_model_that_cannot_be_built_is_told_where_it_stands(refusal):
    mistake = refusal("model: 'openai:x'", environment={})
    assert (mistake.field, mistake.line) == ("models.own.model", 7)
    assert "OPENAI_API_KEY is not set" in mistake.reason

    assert refusal("model: llama3").field == "models.own.model"


def test_a_model_named_directly_is_told_at_its_place(read, minimal):
    team = read(minimal.replace("chat_model: offline", "chat_model: opnai:gpt"))
    with pytest.raises(TeamFileError) as caught:
        build_graph(team.config, models=team.models)

    (mistake,) = caught.value.mistakes
    assert (mistake.field, mistake.line) == ("specialists[0].chat_model", 6)


def test_a_name_from_elsewhere_is_an_error_of_the_configuration(read, minimal):
    with pytest.raises(ConfigurationError):
        read(minimal).models.chat_model("nobody")


@pytest.mark.parametrize(
    "field", ["base_url: 'http://x'", "api_key_env: OTHER_KEY", "timeout: 3", "temperature: 1"]
)
def test_what_a_model_does_not_use_is_told(refusal, field):
    mistake = refusal(f"model: offline, {field}")

    assert mistake.code == "unused_field"
    assert mistake.field == f"models.own.{field.partition(':')[0]}"


def test_a_base_url_from_outside_serves_models_without_one(model_of):
    assert model_of("model: llama3", base_url=URL).openai_api_base == URL
    assert model_of("model: offline", name="llama3:8b", base_url=URL).model_name == "llama3:8b"
    own = "http://127.0.0.1:7/v1"
    assert model_of(f"model: x, base_url: '{own}'", base_url=URL).openai_api_base == own


def test_keys_are_not_shown(read, minimal):
    assert "open-key" not in repr(read(minimal, KEYS))


PRICED = """\
host: {model: quick}
models:
  quick: {model: "openai:gpt-x", api_key_env: SOME_KEY}
specialists:
  - {name: a, intended_use: A., chat_model: "openai:gpt-y", limits: {max_cost: 0.5}}
"""


@pytest.mark.parametrize("known", ["quick", "openai:gpt-x", "gpt-x"])
@pytest.mark.parametrize("other", ["openai:gpt-y", "gpt-y"])
def test_a_price_stands_under_any_name_of_a_model(read, known, other):
    prices = f"prices: {{'{known}': {{input: 1, output: 2}}, '{other}': {{input: 3, output: 4}}}}"
    team = read(PRICED + prices, {"SOME_KEY": "k", "OPENAI_API_KEY": "k"})
    build_graph(team.config, models=team.models)
    assert team.config.prices["quick"] == Price(input=1, output=2)
    assert team.config.specialists[0].limits == Budget(max_cost=0.5)


def test_a_model_without_a_price_is_told_where_it_stands_if_money_is_bound(read, mistakes):
    (mistake,) = mistakes(PRICED + "prices: {gpt-x: {input: 1, output: 2}}\n")
    assert (mistake.field, mistake.line) == ("specialists[0].chat_model", 5)
    assert "no price" in mistake.reason
    assert "prices" in mistake.fix
    read(PRICED.replace(", limits: {max_cost: 0.5}", ""))
