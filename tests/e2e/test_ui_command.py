"""`replan ui` as a program: the address that it prints, its restart, and what it refuses."""

import httpx

import warm
from pages import program

TEAM = """\
host: {model: offline}
specialists:
  - {name: worker, intended_use: Works., chat_model: offline}
"""


def test_a_browser_that_came_in_once_stays_in_after_a_new_start(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("REPLAN_TOKEN", raising=False)
    (tmp_path / "house.yaml").write_text(TEAM)
    with httpx.Client(trust_env=False, timeout=30, follow_redirects=True) as browser:
        with program(tmp_path, 0) as address:
            assert "There are no runs here yet" in browser.get(address).text
            port = httpx.URL(address).port
            with httpx.Client(trust_env=False, timeout=30) as other:
                assert other.get(address).status_code == 401
        with program(tmp_path, port) as again:
            assert again != address
            assert browser.get(f"http://127.0.0.1:{port}/").status_code == 200
    (kept,) = tmp_path.rglob("ui.token")
    assert kept.stat().st_mode & 0o777 == 0o600


def test_what_cannot_be_shown_is_told_with_exit_code_2(tmp_path):
    (tmp_path / "house.yaml").write_text(TEAM)
    (tmp_path / "tokens.yaml").write_text("tokens: []\n")
    house = str(tmp_path / "house.yaml")
    cases = {
        "is not a path": [house, "--prefix", "tools"],
        "of letters and digits": [house, "--prefix", "/a b"],
        "nowhere.yaml": [str(tmp_path / "nowhere.yaml")],
        "there is no token in it": [house, "--tokens", str(tmp_path / "tokens.yaml")],
    }
    for told, words in cases.items():
        storage = ["--storage", str(tmp_path / "runs.db"), "--port", "0"]
        done = warm.run("-m", "replan", "ui", *words, *storage)
        assert done.returncode == 2, done.stderr
        assert told in done.stderr, done.stderr
