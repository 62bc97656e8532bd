"""What people read who make a mistake: short, and with something to type."""

from pathlib import Path

import pytest

from replan import Host, Specialist, Team, build_graph, open_runtime
from replan.base.errors import TeamError, mistake, shown


def works(context):
    return "Done."


WORKER = Specialist("worker", "Works.", run=works)


@pytest.mark.parametrize("fields", [{"specialists": WORKER}, {"host": WORKER}])
def test_a_part_at_the_wrong_place_is_not_written_out(fields):
    with pytest.raises(TeamError) as caught:
        Team(**{"host": Host("offline"), "specialists": [WORKER], **fields})
    assert all(len(line) < 300 for line in str(caught.value).splitlines())
    assert all(len(each.value) <= 80 for each in caught.value.mistakes)


def test_a_field_at_the_wrong_place_is_told_with_its_place():
    with pytest.raises(TeamError, match=r"max_cost: .* Write it under limits: in Python limits="):
        Team("offline", [WORKER], max_cost=1)


def test_a_function_that_takes_no_context_is_refused_when_the_team_is_made():
    with pytest.raises(TeamError, match=r"specialists\[0\].run: it takes no context"):
        Team("offline", [Specialist("worker", "Works.", run=lambda: "Done.")])


@pytest.mark.parametrize(
    ("work", "name"),
    [(lambda a, config, third: "", "third"), (lambda a, *, context: "", "context")],
)
def test_a_function_that_needs_more_than_a_step_gives_is_refused(work, name):
    with pytest.raises(TeamError, match=rf"run: it needs {name}, which no step gives"):
        Team("offline", [Specialist("worker", "Works.", run=work)])


def test_a_function_may_take_configuration_key_and_defaults():
    def keyed(context, config, *more, idempotency_key, note="", **others):
        return "Done."

    Team("offline", [Specialist("worker", "Works.", run=keyed)])


@pytest.mark.parametrize("make", [Path, lambda path: path.write_text("a file") and path])
def test_a_workspace_that_is_no_folder_is_refused_before_anything_runs(make, tmp_path):
    team = Team("offline", [WORKER], workspace=make(tmp_path / "nothing"))
    with pytest.raises(TeamError, match=r"workspace: there is no such folder .*Create it"):
        build_graph(team)


def test_a_runtime_that_is_not_open_says_how_to_open_it():
    with pytest.raises(AttributeError, match=r"with open_runtime\(\.\.\.\) as runtime"):
        _ = open_runtime(Team("offline", [WORKER])).run


def test_a_list_of_mistakes_fits_on_a_screen():
    with pytest.raises(TeamError) as caught:
        Team("offline", [Specialist(f"s{n}", "", run=works) for n in range(100)])
    assert len(caught.value.mistakes) == 100
    assert len(str(caught.value).splitlines()) <= 24


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ([1], ""),
        (True, "true"),
        (0.5, "0.5"),
        ("red", "'red'"),
        ("sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ", "***"),
    ],
)
def test_a_value_is_shown_short_and_without_secrets(value, text):
    assert shown(value) == text
    assert len(shown("x" * 1_000_000)) == 80
    assert shown(10**5000) == "int"


def test_a_reason_is_a_sentence_alone_and_a_part_of_one_behind_its_field():
    found = mistake("host.model", "gpt", "no model has this name", "Write openai:NAME.")
    assert found.reason == "No model has this name."
    assert str(found) == "host.model: no model has this name (got 'gpt'). Write openai:NAME."
