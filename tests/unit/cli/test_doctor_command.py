"""`replan doctor`: what it finds in order, what it does not, and that it changes nothing."""

import pytest
from typer.testing import CliRunner

from replan.cli import doctor
from replan.cli.main import app
from replan.testing import OpenAIServer

KEY = "sk-a-secret-of-the-environment"


@pytest.fixture
def replan(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("REPLAN_BASE_URL", raising=False)

    def do(*words, storage="runs.db"):
        return CliRunner().invoke(app, ["doctor", *words, "--storage", str(tmp_path / storage)])

    return do


def test_a_storage_that_is_not_there_is_named_and_not_made(replan, tmp_path):
    done = replan()
    assert done.exit_code == 0
    assert f"-       storage: {tmp_path / 'runs.db'} is not there yet" in done.stdout
    assert [*tmp_path.iterdir()] == []


def test_a_storage_that_cannot_be_read_is_a_problem(replan, tmp_path):
    (tmp_path / "runs.db").write_text("no database at all, but a text of some length")
    done = replan()
    assert done.exit_code == 1
    assert "PROBLEM storage: " in done.stdout


def test_a_key_is_said_to_be_set_and_never_shown(replan, monkeypatch):
    assert "OPENAI_API_KEY: is not set" in replan().stdout
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    told = replan().stdout
    assert "ok      OPENAI_API_KEY: is set" in told
    assert KEY not in told


def test_a_server_is_asked_whether_it_answers(replan):
    with OpenAIServer(lambda _: "Hello.") as server:
        done = replan("--base-url", server.base_url)
        assert (done.exit_code, "answers" in done.stdout) == (0, True)
        wrong = replan("--base-url", f"{server.base_url}/nowhere")
        assert wrong.exit_code == 1
        assert "Does its address end in /v1?" in wrong.stdout
        address = server.base_url
    gone = replan("--base-url", address)
    assert gone.exit_code == 1
    assert f"PROBLEM model server: {address} cannot be reached" in gone.stdout


def test_a_part_that_is_missing_comes_with_what_installs_it(replan, monkeypatch):
    wanted = {
        "replan": ['pydantic>=2; extra == "there"', 'nothing-of-this-name>=1; extra == "gone"'],
    }
    monkeypatch.setattr(doctor, "requires", wanted.get)
    told = replan().stdout
    assert "ok      installed parts: there" in told
    assert '-       part gone: without nothing-of-this-name; pip install "replan[gone]"' in told


def test_a_part_may_want_a_part_of_another_package(replan, monkeypatch):
    wanted = {
        "replan": ['pydantic[own]>=2; extra == "far"'],
        "pydantic": ['nothing-of-this-name>=1; extra == "own"'],
    }
    monkeypatch.setattr(doctor, "requires", wanted.get)
    assert "part far: without nothing-of-this-name" in replan().stdout
