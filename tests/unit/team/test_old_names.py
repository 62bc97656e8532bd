"""The names that a team had before: they do the same, and say once what to write instead."""

import pytest

import replan
from replan import ConfigurationError, Host, Specialist, Team
from replan.base.declared import part


@pytest.fixture(autouse=True)
def _nothing_told(monkeypatch):
    monkeypatch.setattr(part, "_said", set())


def test_a_team_of_the_old_names_is_a_team():
    with pytest.warns(DeprecationWarning, match="is the old name of") as told:
        old = replan.MultiAgentConfig(
            host=Host(tool_calling_model="offline"),
            specialists=[Specialist("clerk", "Files.", chat_model="offline")],
        )

    assert old == Team("offline", [Specialist("clerk", "Files.", chat_model="offline")])
    first, second = (str(each.message) for each in told)
    assert first == "MultiAgentConfig is the old name of Team, and does the same. Write Team."
    assert second.startswith("Host(tool_calling_model=...) is the old name of Host(model=...)")
    assert {each.filename for each in told} == {__file__}


def test_both_names_of_a_model_are_one_too_many():
    with pytest.raises(ConfigurationError, match=r"host\.tool_calling_model: there is no such"):
        Team(Host("offline", tool_calling_model="offline"), [Specialist("a", "A.", run=print)])


OLD_FILE = """\
host:
  tool_calling_model: {}
specialists: [{{name: a, intended_use: A., chat_model: offline}}]
"""


def test_a_file_with_an_old_name_is_read(read):
    with pytest.warns(DeprecationWarning, match="in a team file is the old name of model"):
        assert read(OLD_FILE.format("offline")).config.host.model == "offline"


def test_a_mistake_below_an_old_name_keeps_its_place(mistakes):
    with pytest.warns(DeprecationWarning, match="is the old name of"):
        (mistake,) = mistakes(OLD_FILE.format("nobody"))

    assert (mistake.line, mistake.column, mistake.field) == (2, 23, "host.model")
