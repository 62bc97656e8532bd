"""A team file gives what the same words give in Python."""

from pathlib import Path

import pytest

from replan import Host, Specialist, Team
from replan.errors import ConfigurationError, TeamFileError, UsageError
from replan.state.limits import Limits
from replan.team.team_file import read_team_file

WHOLE = Path(__file__).with_name("whole_team.yaml").read_text("utf-8")
WORK = """\
def bake(context):
    return f"Baked: {context.task_description}"

def ask(context):
    return []

def deliver(messages):
    return "delivered"

class Shop:
    @staticmethod
    def read(message):
        return None
"""


@pytest.fixture
def team(read, write, module, tmp_path):
    module("bakery_work", WORK)
    write("\ufeffReflect.\n", "prompts/reflection.md")
    write("Sell.\n", "prompts/seller.md")
    (tmp_path / "shop").mkdir()
    return read(WHOLE)


def test_every_field_arrives_in_the_configuration(team, tmp_path):
    config = team.config

    assert config.name == "bakery"
    assert config.host == Host(
        model="strong",
        thinking_model="offline",
        planning_model="openai:gpt-x",
        feedback_model="quick",
        system_prompt="Be brief.",
        thinking_prompt="Think {file} $here.",
        planning_prompt="Plan.",
        reflection_prompt="Reflect.",
    )
    assert config.limits == Limits(max_rounds=3, step_timeout=20)
    assert (config.round_scope, config.on_failure, config.calls) == ("ready", "halt", "separate")
    assert config.complexity_threshold == 1
    assert config.plan_template == "- [ ] 1. ..."
    assert (config.thinking_prompt_template, config.reflection_prompt_template) == ("T", "R")
    assert config.allow_dynamic_update is False
    assert config.settings.approval == "revisions"
    assert config.workspace == tmp_path / "shop"


def test_what_a_file_leaves_out_is_as_in_python(read, minimal, tmp_path):
    config = read(minimal).config
    clerk = Specialist(name="clerk", intended_use="Everything.", chat_model="offline")
    python = Team(host=Host(model="offline"), specialists=[clerk], workspace=tmp_path)

    assert dict(config) == {**dict(python), "models": {}}


def test_anchors_and_merged_fields_are_read(read, minimal):
    text = """\
  - &clerk
    name: second
    intended_use: More.
    chat_model: offline
    system_prompt: Hello.
  - <<: *clerk
    name: third
"""
    second, third = read(minimal + text).config.specialists[1:]

    assert third == second.replace(name="third")


def test_a_directory_goes_before_the_workspace_of_the_file(read, minimal, tmp_path):
    other = tmp_path / "other"
    other.mkdir()

    assert read(minimal, directory=other).config.workspace == other
    assert read(f"{minimal}workspace: nowhere\n", directory=other).config.workspace == other


def test_files_of_steps_go_where_the_file_or_its_reader_says(read, minimal, tmp_path):
    assert read(minimal).config.out is None
    assert read(f"{minimal}out: reports\n").config.out == tmp_path / "reports"
    assert read(f"{minimal}out: reports\n", out=Path("other")).config.out == Path("other")


def test_the_error_of_a_team_file_is_one_of_usage(tmp_path):
    with pytest.raises(UsageError) as caught:
        read_team_file(tmp_path / "none.yaml", {})

    with pytest.raises(TeamFileError, match="cannot be read"):
        read_team_file(tmp_path / ("x" * 300), {})

    assert isinstance(caught.value, TeamFileError)
    assert not isinstance(caught.value, ConfigurationError)
    assert str(tmp_path / "none.yaml") in str(caught.value)
    assert "replan init" in str(caught.value)
