"""Every mistake of a team file is told, with its place, its value and its fix."""

import pytest

from replan.errors import TeamFileError

HOST = "host: {model: offline}\n"
TEAM = "specialists: [{name: a, intended_use: A., chat_model: offline}]\n"
TWO = TEAM.replace("]\n", ", {name: b, intended_use: B., chat_model: offline}]\n")
GOOD = HOST + TEAM

# text, line, column, code, field, value, a part of the fix
MISTAKES = [
    (f"{GOOD}roundscope: plan\n", 3, 1, "unknown_field", "roundscope", "'plan'", "round_scope"),
    (f"{GOOD}zzz: 1\n", 3, 1, "unknown_field", "zzz", "1", "The fields are: "),
    (
        f"{HOST}{TEAM[:-3]}, promt: x}}]\n",
        2,
        64,
        "unknown_field",
        "specialists[0].promt",
        "'x'",
        "",
    ),
    (
        f"{HOST}specialists: [{{name: a, intended_use: A., model: offline}}]\n",
        2,
        43,
        "unknown_field",
        "specialists[0].model",
        "'offline'",
        "unit_model or chat_model",
    ),
    (HOST, 1, 1, "missing", "specialists", "", "Add specialists"),
    (TWO, 1, 1, "no_host", "host", "", "Give the host"),
    (f"host: {{system_prompt: x}}\n{TEAM}", 1, 1, "missing", "host.model", "", "Add"),
    (f"{HOST}specialists: []\n", 2, 14, "empty", "specialists", "", "at least one"),
    (f"{HOST}specialists: a\n", 2, 14, "wrong_type", "specialists", "'a'", "- "),
    (f"{HOST}specialists: [a]\n", 2, 15, "wrong_type", "specialists[0]", "'a'", "fields"),
    (f"{GOOD}name: 3\n", 3, 7, "wrong_type", "name", "3", "quotes"),
    (f"{GOOD}name: no\n", 3, 7, "wrong_type", "name", "false", "quotes"),
    (f"{GOOD}limits: 3\n", 3, 9, "wrong_type", "limits", "3", "fields"),
    (f"{GOOD}limits: {{max_steps: 0}}\n", 3, 21, "out_of_bounds", "limits.max_steps", "0", "1 or"),
    (
        f"{GOOD}limits: {{step_timeout: 0}}\n",
        3,
        24,
        "out_of_bounds",
        "limits.step_timeout",
        "0",
        "",
    ),
    (f"{GOOD}limits: {{max_steps: '9'}}\n", 3, 21, "wrong_type", "limits.max_steps", "'9'", ""),
    (f"{GOOD}limits: {{max_steps: yes}}\n", 3, 21, "wrong_type", "limits.max_steps", "true", ""),
    (
        f"{GOOD}limits: {{max_stps: 1}}\n",
        3,
        10,
        "unknown_field",
        "limits.max_stps",
        "1",
        "max_steps",
    ),
    (f"{GOOD}round_scope: all\n", 3, 14, "unknown_choice", "round_scope", "'all'", "'ready'"),
    (f"{GOOD}approval: sometimes\n", 3, 11, "unknown_choice", "approval", "'sometimes'", "'plan'"),
    (f"{GOOD}complexity_threshold: 2\n", 3, 23, "out_of_bounds", "complexity_threshold", "2", ""),
    (
        f"{GOOD}allow_dynamic_update: 'no'\n",
        3,
        23,
        "wrong_type",
        "allow_dynamic_update",
        "'no'",
        "",
    ),
    (f"{GOOD}workspace: nowhere\n", 3, 12, "no_folder", "workspace", "'nowhere'", "Create it"),
    (f"{GOOD}workspace: 5\n", 3, 12, "wrong_type", "workspace", "5", "folder"),
    (
        f"{GOOD}models: {{a b: {{model: offline}}}}\n",
        3,
        10,
        "bad_name",
        "models.a b",
        "'a b'",
        "letters",
    ),
    (
        f"{GOOD}models: {{offline: {{model: x}}}}\n",
        3,
        10,
        "bad_name",
        "models.offline",
        "'offline'",
        "",
    ),
    (
        f"{GOOD}models: {{a: {{base_url: 'http://x'}}}}\n",
        3,
        10,
        "missing",
        "models.a.model",
        "",
        "",
    ),
    (
        f"{GOOD}models: {{a: {{model: x, base_url: 'ftp://x'}}}}\n",
        *(3, 34, "bad_url", "models.a.base_url", "'ftp://x'", "http://"),
    ),
    (
        f"host: {{model: smrt}}\nmodels: {{smart: {{model: offline}}}}\n{TEAM}",
        *(1, 15, "unknown_model", "host.model", "'smrt'", "smart"),
    ),
    (
        f"host: {{model: gpt}}\n{TEAM}",
        *(1, 15, "unknown_model", "host.model", "'gpt'", "models"),
    ),
]
SPECIALISTS = [
    ("name: a b, intended_use: x, chat_model: offline", "bad_name", "name"),
    ("name: b, intended_use: ' ', chat_model: offline", "empty", "intended_use"),
    ("name: b, intended_use: x, chat_model: x", "unknown_model", "chat_model"),
    ("name: A, intended_use: x, chat_model: offline", "duplicate_specialist", "name"),
    ("intended_use: x, chat_model: offline", "missing", "name"),
    ("name: b, chat_model: offline", "missing", "intended_use"),
    ("name: b, intended_use: x", "no_way", ""),
    ("name: b, intended_use: x, chat_model: offline, run: 'os:getcwd'", "two_ways", "run"),
    ("name: b, intended_use: x, run: 'os:getcwd', tools: []", "unused_field", "tools"),
    ("use: 'replan_local:writer', system_prompt: x", "unused_field", "system_prompt"),
    ("name: b, intended_use: x, chat_model: offline, tools: x", "wrong_type", "tools"),
    ("name: b, intended_use: x, chat_model: offline, tools: ['os:sep']", "no_function", "tools[0]"),
    ("use: 'replan_local:riter'", "no_function", "use"),
    ("use: 'os:getcwd'", "no_specialist", "use"),
    ("local: writer", "unknown_field", "local"),
    ("use: 3", "wrong_type", "use"),
    ("name: b, intended_use: x, run: 3", "wrong_type", "run"),
    ("name: b, intended_use: x, run: 'os:sep'", "no_function", "run"),
    ("name: b, intended_use: x, invokable: 'os:sep'", "no_function", "invokable"),
    (
        "name: b, intended_use: x, chat_model: offline, capabilities: x",
        "wrong_type",
        "capabilities",
    ),
]


@pytest.mark.parametrize(
    ("text", "line", "column", "code", "field", "value", "fix"),
    MISTAKES,
    ids=[f"{each[3]}-{each[4]}-{number}" for number, each in enumerate(MISTAKES)],
)
def test_a_mistake_has_its_place_its_value_and_its_mend(
    mistakes, text, line, column, code, field, value, fix
):
    (mistake,) = mistakes(text)

    assert (mistake.line, mistake.column) == (line, column)
    assert (mistake.code, mistake.field, mistake.value) == (code, field, value)
    assert fix in mistake.fix
    assert mistake.reason.endswith(".")


@pytest.mark.parametrize(("fields", "code", "field"), SPECIALISTS)
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


def test_the_message_names_the_file_line_and_column_of_each(read, tmp_path):
    with pytest.raises(TeamFileError) as caught:
        read(f"{GOOD}name: 3\nround_scope: all\n")

    assert caught.value.path == tmp_path / "team.yaml"
    assert str(caught.value) == (
        "2 mistakes in the team file:\n"
        f"  {tmp_path}/team.yaml:3:7: name: this must be text (got 3). "
        "Write text, in quotes where needed.\n"
        f"  {tmp_path}/team.yaml:4:14: round_scope: this is not one of the choices (got 'all'). "
        "Write 'plan', 'ready' or 'step'."
    )


def test_what_the_configuration_itself_refuses_is_told_at_its_place(mistakes, module):
    module("team_nothing", "class Work:\n    ainvoke = None\nNOTHING = Work()\n")
    member = "{name: b, intended_use: B., invokable: 'team_nothing:NOTHING'}"
    (mistake,) = mistakes(f"{HOST}specialists:\n  - {member}\n")

    assert (mistake.line, mistake.field) == (3, "specialists[0].invokable")
    assert mistake.reason == "It is of type Work, and cannot be called."


def test_a_field_of_former_team_files_is_told_with_what_to_write_instead(mistakes):
    (mistake,) = mistakes(f"{HOST}specialists:\n  - local: data_analyst\n")

    assert (mistake.line, mistake.code) == (3, "unknown_field")
    assert mistake.fix == "Write use: replan_local:NAME in its place."


def test_a_long_value_is_shown_short(mistakes):
    (mistake,) = mistakes(f"{GOOD}round_scope: {'x' * 500}\n")

    assert len(mistake.value) <= 80


KEY = "sk-proj-aB3dE5gH7jK9mN1pQ3sT5"
SECRETS = [
    f"{GOOD}models: {{a: {{model: x, api_key: {KEY}}}}}\n",
    f"{GOOD}models: {{a: {{model: x, api_key: plain words}}}}\n",
    f"{GOOD}models: {{a: {{model: x, api_key_env: {KEY}}}}}\n",
    f"{GOOD}models: {{a: {{model: x, api_key_env: 0a1b2c3d4e5f60718293a4b5c6d7e8f9}}}}\n",
    f"{GOOD}models: {{a: {{model: x, base_url: 'http://me:{KEY}@server/v1'}}}}\n",
    f"{GOOD}openai_api_key: {KEY}\n",
    f"{GOOD}name: {KEY}\n",
    f"{GOOD}plan_template: 'Say {KEY} to the server'\n",
    f"{GOOD}password: hunter2hunter2\n",
    f"host: {{model: offline, system_prompt: 'Authorization: Bearer {KEY}'}}\n{TEAM}",
]


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
