"""Who may continue a run, and what is said of a team that has changed."""

from datetime import UTC, datetime

import pytest

from replan.log.labels import TEAM
from replan.ports.run_book import RunRecord, TeamIdentity
from replan.runs.team_on_record import changes_of_team, who_continues

NOW = datetime(2026, 11, 29, tzinfo=UTC)
SHOP = TeamIdentity.of("shop", "host: offline", "/teams/shop.yaml")
OPTIONS = dict.fromkeys(("task", "team", "directory", "out", "plan_out", "base_url"))


def record(**fields):
    given = {"order": OPTIONS, "team": SHOP} | fields
    return RunRecord(run_id="a" * 32, thread_id="a", started_at=NOW, updated_at=NOW, **given)


def of_server(name="shop"):
    return record(order={}, labels={TEAM: name})


@pytest.mark.parametrize("begun", [record(), record(order={"input": {}}), record(order=None)])
@pytest.mark.parametrize("is_signed", [True, False])
def test_who_has_a_tenant_or_limits_continues_no_run_of_a_terminal(begun, is_signed):
    found = who_continues(begun, ["shop"], is_operator=False, is_signed=is_signed)
    assert (found.team, found.by_options, found.code) == ("", False, "not_allowed")
    assert "replan resume aaaaaaaa" in found.missing


def test_a_run_of_a_server_is_continued_by_the_team_of_its_name_whoever_asks():
    for is_operator in (True, False):
        assert who_continues(of_server(), ["shop"], is_operator=is_operator).team == "shop"
        assert who_continues(of_server("x"), ["shop"], is_operator=is_operator).code == "other_team"


def test_an_operator_continues_a_terminals_run_by_its_options_else_by_the_team_of_its_name():
    assert who_continues(record(), ["shop"], is_operator=True, is_signed=True).by_options
    assert who_continues(record(), ["shop"], is_operator=True).team == "shop"
    found = who_continues(record(), ["other"], is_operator=True)
    assert found.code == "unsigned"
    assert "'shop' of this run is not here. Here are: other." in found.missing


def test_a_turn_of_a_session_that_no_server_took_belongs_to_no_team_here():
    turn = record(order=None, labels={"session": "s"})
    assert not who_continues(turn, ["shop"], is_operator=True).team


def test_only_another_version_of_a_team_is_told():
    assert changes_of_team(record(), SHOP) == ()
    assert changes_of_team(record(), SHOP.replace(source="/elsewhere/shop.yaml")) == ()
    assert changes_of_team(record(team=None), SHOP) == ()
    (told,) = changes_of_team(record(), SHOP.replace(digest="f" * 16))
    assert "'shop'" in told
    assert SHOP.digest in told
    assert "f" * 16 in told
