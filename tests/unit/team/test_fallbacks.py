"""Models in the place of others: in Python, and by the names of a team file."""

import pytest

from replan import (
    Fallback,
    Host,
    MemoryOptions,
    RunSettings,
    Specialist,
    Team,
    TeamError,
    TeamFileError,
)
from replan.assembly.team_services import services_of
from replan.cli.shared.worst_case import team_of
from replan.team.team_file import read_team_file

FILE = """\
host: main
models:
  main: {model: "openai:a", fallback: [cheap, "openai:c"], max_retries: 1}
  cheap: {model: "openai:b", fallback: [main, offline], max_retries: 0}
specialists:
  - {name: worker, intended_use: Works., chat_model: cheap}
"""


def read(tmp_path, text=FILE):
    path = tmp_path / "team.yaml"
    path.write_text(text, "utf-8")
    return read_team_file(path, {})


def test_a_name_stands_for_its_model_and_all_that_come_after_it_each_once(tmp_path):
    team = read(tmp_path)
    assert team.config.host.model == Fallback("main", "cheap", "offline", "openai:c")
    assert team.config.specialists[0].chat_model == Fallback("cheap", "main", "openai:c", "offline")
    assert team.with_model("cheap").config.host.model == team.config.specialists[0].chat_model


@pytest.mark.parametrize(
    ("fallback", "field"),
    [("[chaep]", "models.main.fallback[0]"), ("cheap", "models.main.fallback")],
)
def test_a_fallback_that_nobody_knows_is_told_with_its_place(tmp_path, fallback, field):
    text = FILE.replace('[cheap, "openai:c"]', fallback)
    with pytest.raises(TeamFileError) as error:
        read(tmp_path, text)
    (mistake,) = error.value.mistakes
    assert (mistake.field, mistake.line) == (field, 3)


def test_the_price_of_each_is_asked_for_where_money_is_bound(tmp_path):
    text = f'{FILE}limits: {{max_cost: 1}}\nprices: {{"openai:a": {{input: 1, output: 1}}}}\n'
    with pytest.raises(TeamFileError) as error:
        read(tmp_path, text)
    assert any("cheap" in str(each.value) for each in error.value.mistakes)


SUMMARISED = f"""\
{FILE.replace("host: main", "host: {model: cheap, memory: {summary_model_id: main}}")}
memory: {{mode: summary}}
"""


@pytest.mark.parametrize(
    "text",
    [SUMMARISED, FILE.replace("host: main", "host: offline")],
    ids=["in the file", "in the settings"],
)
def test_a_fallback_counts_for_the_model_of_summaries_too(tmp_path, text):
    team = read(tmp_path, text).with_model(base_url="http://127.0.0.1:9/v1")
    services = services_of(team.config, team.models)
    names = [one.names[0] for one in services.model_of("main").chain]
    assert names == ["main", "cheap", "offline", "openai:c"]
    asked = RunSettings(memory=MemoryOptions(mode="summary", summary_model_id="main"))
    known = team_of(team.config, asked, retries=team.models.retries)
    # One try of each, and one call as a whole.
    assert known.per_summary == 4 * (1 + 1)


def test_the_price_of_a_fallback_of_summaries_is_asked_for(tmp_path):
    text = SUMMARISED.replace("model: cheap,", "model: offline,").replace("chat_model: cheap", "")
    text = text.replace("Works., }", "Works., run: 'builtins:print'}")
    prices = '{"openai:a": {input: 1, output: 1}, "openai:b": {input: 1, output: 1}}'
    with pytest.raises(TeamFileError) as error:
        read(tmp_path, f"{text}limits: {{max_cost: 1}}\nprices: {prices}\n")
    assert ["openai:c" in str(each.value) for each in error.value.mistakes] == [True]


@pytest.mark.parametrize("given", [Fallback("openai:a"), Fallback("openai:a", 3)])
def test_a_fallback_that_is_none_is_told(given):
    with pytest.raises(TeamError) as error:
        Team(Host(given), [Specialist("a", "A.", run=print)])
    assert error.value.mistakes[0].field == "host.model"
