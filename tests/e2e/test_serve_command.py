"""`replan serve` as a program: what it prints, what it refuses, and how it ends."""

import os
import socket

import httpx

import warm

TEAM = """\
host: {model: offline}
specialists:
  - name: worker
    intended_use: Works.
    chat_model: offline
"""


def test_it_prints_its_token_once_serves_and_ends_at_a_signal(tmp_path):
    (tmp_path / "house.yaml").write_text(TEAM)
    words = ["-m", "replan", "serve", str(tmp_path / "house.yaml"), "--port", "0"]
    words += ["--storage", str(tmp_path / "runs.db"), "--shutdown-timeout", "1"]
    reads, writes = os.pipe()
    with os.fdopen(reads) as errors, warm.Process(words, stderr=writes) as server:
        os.close(writes)
        told = [errors.readline().strip() for _ in range(3)]
        assert told[0].startswith("serving house on http://127.0.0.1:")
        address, token = told[0].rpartition(" ")[2], told[1].rpartition(" ")[2]
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=address, trust_env=False, timeout=30) as client:
            assert client.get("/ready").json() == {"status": "ok"}
            teams = client.get("/teams", headers=headers).json()["teams"]
        assert [each["name"] for each in teams] == ["house"]
        server.terminate()
        assert server.wait() == 0
        assert token not in errors.read()


def test_what_cannot_be_served_is_told_with_exit_code_2(tmp_path):
    (tmp_path / "house.yaml").write_text(TEAM)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "house.yaml").write_text(TEAM)
    (tmp_path / "tokens.yaml").write_text("tokens:\n  - {name: a, token: short, roles: [run]}\n")
    house, other = str(tmp_path / "house.yaml"), str(tmp_path / "other" / "house.yaml")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        cases = {
            "no such file": [str(tmp_path / "nowhere.yaml")],
            "two teams have this name": [house, other],
            "16 or more": [house, "--tokens", str(tmp_path / "tokens.yaml")],
            "cannot listen": [house, "--port", port],
        }
        for why, words in cases.items():
            arguments = ("-m", "replan", "serve", *words, "--storage", "memory")
            ended = warm.run(*arguments, env={**os.environ, "REPLAN_TOKEN": ""})
            assert ended.returncode == 2, ended.stderr
            assert why in ended.stderr, ended.stderr
            assert "Traceback" not in ended.stderr
