"""What a run was asked to do is kept so that it can be carried out again anywhere."""

import json
from pathlib import Path

import pytest

from cases import cases_of
from replan.cli.user_files.orders import (
    read_limits,
    read_order,
    read_settings,
    restore_order,
    stored_form,
)
from replan.errors import InputError

CASES = cases_of(__file__)


def test_an_order_comes_back_with_whole_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    order = read_order("Do it.", out=Path("reports"), model="openai:x")
    again = restore_order(json.loads(json.dumps(stored_form(order))), "run")
    assert again == order.replace(out=tmp_path / "reports", directory=tmp_path)


def test_a_team_file_keeps_its_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    again = restore_order(stored_form(read_order("Do it.", team=Path("team.yaml"))), "run")
    assert (again.team, again.directory) == (tmp_path / "team.yaml", None)


def test_the_text_of_a_plan_is_kept_and_not_its_place(tmp_path):
    path = tmp_path / "plan.md"
    path.write_text("# Trips\n\n- [ ] 1. Go\n")
    order = read_order(str(path))
    path.unlink()
    again = restore_order(stored_form(order), "run")
    assert again.title == "Trips"
    assert again.input["plan"] == "# Trips\n\n- [ ] 1. Go\n"
    assert again.input["messages"][0].text == "Trips"


def test_a_plan_without_a_heading_is_named_by_its_first_step(tmp_path):
    path = tmp_path / "plan.md"
    for text, goal in (
        ("- [ ] 1. Go\n", "Go"),
        ("- [ ] 1. Go\n- [ ] 2. See\n- [ ] 3. Sleep", "Go, and 2 more steps"),
    ):
        path.write_text(text)
        order = read_order(str(path))
        assert order.title == goal
        assert order.input["messages"][0].text == goal


def test_a_request_is_the_title_in_one_line():
    assert read_order("Do\n  it.").title == "Do it."
    assert read_order("Do it.").input["messages"][0].text == "Do it."


@pytest.mark.parametrize(
    ("address", "is_kept"),
    CASES["addresses"],
)
def test_an_address_with_a_secret_is_not_kept(address, is_kept):
    record = stored_form(read_order("Do it.", base_url=address))
    assert ("secret" in json.dumps(record)) is False
    assert restore_order(record, "run").base_url == (address if is_kept else None)


def test_settings_come_back_with_only_the_fields_that_were_set():
    order = read_order("Do it.", settings=read_settings(["max_rounds=3"], "always"))
    again = restore_order(json.loads(json.dumps(stored_form(order))), "run").settings
    assert again is not None
    assert again.model_fields_set == {"limits", "approval"}
    assert again.limits.model_fields_set == {"max_rounds"}
    assert read_settings([], None) is None


@pytest.mark.parametrize("record", [None, {"task": "Do it.", "later": 1}, {}, "Do it."])
def test_what_another_program_began_cannot_be_carried_out_here(record):
    with pytest.raises(InputError, match="The run a1b2 was not begun by this version"):
        restore_order(record, "a1b2")


def test_an_order_of_another_version_is_read_without_what_is_unknown():
    settings = read_settings(["max_steps=7"], "plan")
    record = json.loads(json.dumps(stored_form(read_order("Do it.", settings=settings))))
    record = {**record, "mood": "good", "settings": {**record["settings"], "mood": "good"}}
    assert restore_order(record, "run").settings == settings


@pytest.mark.parametrize(
    ("text", "complaint"),
    CASES["limits"],
)
def test_a_wrong_limit_is_said(text, complaint):
    with pytest.raises(InputError) as caught:
        read_limits([text])
    assert str(caught.value).startswith(complaint)
