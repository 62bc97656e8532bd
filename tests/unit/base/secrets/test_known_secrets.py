"""What this process knows to be secret, where it learns it, and how cheaply it is masked."""

import pytest
from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from cases import cases_of
from counting import calls
from replan import Host, Specialist, Team, build_graph, open_storage
from replan.base.failures import describe
from replan.base.secrets.masking import KNOWN, MOST
from replan.base.secrets.sources import (
    holds_secret,
    learn_address,
    learn_environment,
    learn_model,
    learn_values,
)
from replan.errors import InputError
from replan.testing import ScriptedModel

CASES = cases_of(__file__)

PLAIN = "correct horse battery"


@pytest.mark.parametrize(
    "name",
    ["OPENAI_API_KEY", "DB_PASSWORD", "PGPASSWORD", "MYSQL_PWD", "AWS_SECRET_ACCESS_KEY",
     "my_token", "SECRET_KEY_BASE", "SENTRY_DSN", "DB_PASSWORD_2", "STRIPE_KEY_LIVE",
     "REPLAN_STORAGE_KEY"],
)  # fmt: skip
def test_the_value_of_a_variable_that_is_named_like_a_secret_is_masked(name: str):
    learn_environment({name: PLAIN})

    assert describe(RuntimeError(f"no login with {PLAIN}!")) == "RuntimeError: no login with ***!"


@pytest.mark.parametrize(
    "name",
    ["HOME", "PWD", "OLDPWD", "KEYBOARD", "TOKENIZERS", "SSH_AUTH_SOCK", "SECRET_NAME", "MONKEY",
     "AWS_SHARED_CREDENTIALS_FILE", "API_KEY_ENV", "MAX_TOKENS_LIMIT", "2024", ""],
)  # fmt: skip
def test_other_variables_hold_no_secret(name: str):
    assert not holds_secret(name)


def test_a_path_and_a_short_value_are_no_secrets():
    learn_environment({"GOOGLE_APPLICATION_CREDENTIALS": "/home/a/key.json", "A_KEY": "seven77"})

    assert not KNOWN.occur_in("/home/a/key.json seven77")


@pytest.mark.parametrize(
    "address",
    CASES["addresses"],
)
def test_the_password_of_an_address_is_masked(address: str):
    learn_address(address)

    assert "hunter2" not in describe(RuntimeError("no login with hunter2hunter2"))


def test_a_password_is_known_as_it_stands_in_an_address_and_as_it_is():
    learn_address("postgresql://user:pa%40swordfish@host/db")

    assert KNOWN.masked("pa%40swordfish or pa@swordfish") == "*** or ***"


def test_the_keys_of_a_chat_model_are_known_wherever_they_stand_in_it():
    model = ChatOpenAI(
        model="x",
        api_key=SecretStr("handed in here"),
        base_url="http://u:pw-of-address@127.0.0.1/v1",
        default_headers={"X-Api-Key": "key of a header", "authorization": "Bearer opaque-word"},
    )
    learn_model(model)
    told = "handed in here, pw-of-address, key of a header, opaque-word"

    assert KNOWN.masked(told) == "***, ***, ***, ***"


def test_the_keys_of_models_inside_of_a_runnable_are_known():
    model = ChatOpenAI(model="x", api_key=SecretStr("inside of a chain"))
    other = ChatOpenAI(model="x", api_key=SecretStr("inside of a fallback"))
    chain = ChatPromptTemplate.from_template("{x}") | model.with_fallbacks([other]).with_retry()
    team = [Specialist(name="a", intended_use="Works.", invokable=chain)]
    build_graph(Team(host=Host(model=ScriptedModel({})), specialists=team))

    assert KNOWN.masked("inside of a chain, inside of a fallback") == "***, ***"


def test_a_value_is_known_in_an_address_and_in_json_too():
    learn_values([SecretStr('pa"ss /word'), b"as bytes, too", None])

    assert KNOWN.masked("pa%22ss%20%2Fword") == "***"
    assert KNOWN.masked('{"x": "pa\\"ss /word"}') == '{"x": "***"}'
    assert KNOWN.masked("as bytes, too") == "***"


async def test_the_key_of_storage_is_known(tmp_path):
    async with open_storage(tmp_path / "runs.db", key="sixteen letters!"):
        assert KNOWN.occur_in("sixteen letters!")


def test_no_error_of_ours_tells_a_known_value():
    learn_values(["plain as day"])

    assert (
        str(InputError("The file 'plain as day' is not there.")) == "The file '***' is not there."
    )


def test_the_oldest_of_very_many_values_give_way():
    KNOWN.add(f"value number {number:06}" for number in range(MOST + 5))

    assert not KNOWN.occur_in("value number 000000")
    assert KNOWN.occur_in(f"value number {MOST + 4:06}")


def test_masking_an_ordinary_text_costs_next_to_nothing():
    KNOWN.add(f"the secret value {number}" for number in range(20))
    text = "Total the revenue by region from sales.csv " * 5
    KNOWN.masked(text)

    assert calls(lambda: KNOWN.masked(text)) < 20
