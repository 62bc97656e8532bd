"""Every mistake of a team file is told, with its place, its value and its fix."""

import pytest

from cases import cases_of

CASES = cases_of(__file__)

HOST = "host: {model: offline}\n"
TEAM = "specialists: [{name: a, intended_use: A., chat_model: offline}]\n"
GOOD = HOST + TEAM


@pytest.mark.parametrize(
    ("text", "line", "column", "code", "field", "value", "fix"),
    CASES["mistakes"],
)
def test_a_mistake_has_its_place_its_value_and_its_mend(
    mistakes, text, line, column, code, field, value, fix
):
    for name, part in {"$GOOD": GOOD, "$HOST": HOST, "$TEAM": TEAM}.items():
        text = text.replace(name, part)
    (mistake,) = mistakes(text)

    assert (mistake.line, mistake.column) == (line, column)
    assert (mistake.code, mistake.field, mistake.value) == (code, field, value)
    assert fix in mistake.fix
    assert mistake.reason.endswith(".")


@pytest.mark.parametrize(("fields", "code", "field"), CASES["specialists"])
def test_a_specialist_that_cannot_be_is_told(mistakes, fields, code, field):
    first = "specialists:\n  - {name: a, intended_use: A., chat_model: offline}\n"
    (mistake,) = mistakes(f"{HOST}{first}  - {{{fields}}}\n")

    assert (mistake.line, mistake.code) == (4, code)
    assert mistake.field == f"specialists[1].{field}".rstrip(".")


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file(mistakes):
    found = mistakes("""\
limits: {max_rounds: 0}
hots: {}
host:
  model: nobody
  system_prompt: {file: missing.md}
specialists:
  - name: a
    intended_use: A.
    run: no_such_module_here:x
  - name: a
    intended_use: ''
    chat_model: offline
    chat_model: offline
""")

    assert [(each.line, each.code) for each in found] == [
        (1, "out_of_bounds"),
        (2, "unknown_field"),
        (4, "unknown_model"),
        (5, "no_prompt_file"),
        (9, "no_module"),
        (10, "duplicate_specialist"),
        (11, "empty"),
        (13, "duplicate_field"),
    ]


def test_what_the_configuration_itself_refuses_is_told_at_its_place(mistakes, module):
    module("team_nothing", "class Work:\n    ainvoke = None\nNOTHING = Work()\n")
    member = "{name: b, intended_use: B., invokable: 'team_nothing:NOTHING'}"
    (mistake,) = mistakes(f"{HOST}specialists:\n  - {member}\n")

    assert (mistake.line, mistake.field) == (3, "specialists[0].invokable")
    assert mistake.reason == "It is of type Work, and cannot be called."


def test_a_long_value_is_shown_short(mistakes):
    (mistake,) = mistakes(f"{GOOD}round_scope: {'x' * 500}\n")

    assert len(mistake.value) <= 80


KEY = "sk-proj-aB3dE5gH7jK9mN1pQ3sT5"
SECRETS = CASES["secrets"]


@pytest.mark.parametrize("text", SECRETS)
def test_a_key_in_the_file_is_an_error_that_does_not_repeat_it(mistakes, text):
    (mistake,) = mistakes(text)

    assert mistake.code == "literal_secret"
    assert mistake.value == "***"
    assert "api_key_env: OPENAI_API_KEY" in mistake.fix
    for secret in (KEY, "plain words", "0a1b2c3d", "hunter2"):
        assert secret not in str(mistake)


def test_a_token_of_a_tool_server_is_told_to_go_where_the_servers_field_names_it(mistakes):
    server = "tool_servers: {shop: {url: 'https://shop.example.com', token: plain words}}\n"
    (mistake,) = mistakes(f"{GOOD}{server}")
    assert "token_env: TOOLS_TOKEN" in mistake.fix
    assert "plain words" not in str(mistake)


def test_a_key_in_the_place_of_a_name_is_not_repeated(mistakes):
    for text in (f"{GOOD}{KEY}: x\n", f"{GOOD}models: {{{KEY}: {{model: offline, x: 1}}}}\n"):
        assert all(KEY not in str(each) and KEY not in each.field for each in mistakes(text))


def test_prose_about_keys_and_tokens_is_no_key(read):
    prose = "Never tell the api key. token: a word. Use sk-learn-like-pipelines-everywhere."

    assert read(f"{GOOD}plan_template: '{prose}'\n").config.plan_template == prose
