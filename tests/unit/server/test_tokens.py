"""A file of tokens: who calls, and every mistake with its field."""

import pytest

from replan import ConfigurationError, InputError
from replan.server.callers.tokens import read_tokens

GOOD = """\
tokens:
  - name: anna
    token_env: ANNA
    tenant: north
    user: Anna B.
    roles: [run, answer]
    limits: {runs_at_once: 2, tokens_a_day: 1000000, money_a_day: 2.5}
  - name: root
    token: a-token-of-32-signs-or-thereabouts
    roles: [operate]
"""
JWT = "jwt:\n  issuer: https://id.example\n  audience: replan\n"
ANNA = {"ANNA": "the-token-of-anna-herself"}


def written(folder, text):
    path = folder / "tokens.yaml"
    path.write_text(text)
    return path


async def test_tokens_are_read_from_a_file_and_the_environment(tmp_path):
    tokens = read_tokens(written(tmp_path, GOOD), ANNA)
    anna = await tokens.identity_of("the-token-of-anna-herself")
    assert (anna.name, anna.tenant, anna.person) == ("anna", "north", "Anna B.")
    assert [anna.may(each) for each in ("read", "run", "answer", "operate")] == [1, 1, 1, 0]
    assert (await tokens.identity_of("a-token-of-32-signs-or-thereabouts")).may("run")
    assert await tokens.identity_of("") is await tokens.identity_of("the-token-of-anna") is None
    assert "the-token-of-anna" not in repr(tokens)


def test_what_is_wrong_with_a_file_of_tokens_is_named_and_no_token_is_told(tmp_path):
    second = GOOD.index("  - name: root")
    cases = {
        "tokens[0].token_env": (GOOD, {}),
        "tokens[0].token_env (ANNA)": (GOOD, {"ANNA": "short"}),
        "tokens[1].name": (GOOD.replace("name: root", "name: anna"), ANNA),
        "tokens[1].token": (GOOD.replace("    token: ", "    user: "), ANNA),
        "tokens[0].tenant": (GOOD.replace("north", "no/rth"), ANNA),
        "tokens[0].roles[0]": (GOOD.replace("[run, answer]", "[walk]"), ANNA),
        "tokens[0].limits.runs_at_once": (GOOD.replace("once: 2", "once: 0"), ANNA),
        "tokens[0].rolls": (GOOD.replace("    user:", "    rolls: 1\n    user:"), ANNA),
        "tokens": ("tokens: []", ANNA),
        "jwt.jwks_url": (f"{JWT}  jwks_url: file:///etc/passwd\n", ANNA),
        "jwt.algorithms[0]": (f"{JWT}  jwks_url: https://a.example\n  algorithms: [HS256]\n", ANNA),
    }
    for field, (text, environment) in cases.items():
        with pytest.raises(ConfigurationError) as raised:
            read_tokens(written(tmp_path, text), environment)
        assert raised.value.field == field
        assert "a-token-of-32" not in str(raised.value)
    twice = GOOD[:second] + GOOD[second:].replace(
        "a-token-of-32-signs-or-thereabouts", ANNA["ANNA"]
    )
    with pytest.raises(ConfigurationError, match="anna has the same token"):
        read_tokens(written(tmp_path, twice), ANNA)
    for text in ("tokens: [", "\0"):
        with pytest.raises(InputError, match="cannot be read"):
            read_tokens(written(tmp_path, text), ANNA)
    with pytest.raises(InputError, match="cannot be read"):
        read_tokens(tmp_path / "nowhere", ANNA)
