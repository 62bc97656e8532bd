"""The door of the examples, over real HTTP: what a server of one's own needs of the run service."""

import json
import runpy
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from replan import Host, Specialist, Team, ask_user, open_runtime
from replan.testing import ScriptedModel, always

EXAMPLE = Path(__file__).parents[2] / "examples" / "http_door.py"
END = {"feedback": always("---\nverdict: complete\n---\nThe end.")}
PLAN = {"plan": "# House\n\n- [ ] 1. Dig @worker\n- [ ] 2. Paint @painter (after 1)\n"}


class House:
    """Work that can be held up."""

    def __init__(self):
        self.at_work, self.leave = threading.Event(), threading.Event()

    def work(self, _):
        self.at_work.set()
        assert self.leave.wait(30)
        return "done"

    def team(self):
        works = {"run": self.work, "effects": "pure"}
        return Team(
            host=Host(model=ScriptedModel(END)),
            specialists=[
                Specialist(name="worker", intended_use="Works.", **works),
                Specialist(name="painter", intended_use="Paints.", run=lambda _: ask_user("Hue?")),
            ],
        )


@pytest.fixture
def house():
    return House()


@pytest.fixture
def client(house, tmp_path):
    door = runpy.run_path(str(EXAMPLE))["Door"]
    door.log_message = lambda *_: None
    with open_runtime(house.team(), storage=tmp_path / "runs.db") as door.runtime:
        server = ThreadingHTTPServer(("127.0.0.1", 0), door)
        threading.Thread(target=server.serve_forever).start()
        address = f"http://127.0.0.1:{server.server_port}"
        with httpx.Client(base_url=address, trust_env=False, timeout=60) as client:
            yield client
        server.shutdown()
        server.server_close()


def begun(client):
    return client.post("/runs", json=PLAN).json()["run_id"]


def events_in(text):
    return [json.loads(part.split("data: ")[1]) for part in text.split("\n\n") if part]


def test_a_run_is_begun_followed_answered_and_ends(client, house):
    run = begun(client)
    with client.stream("GET", f"/runs/{run}/events/0") as following:
        house.leave.set()
        told = events_in("".join(following.iter_text()))
    assert [each["seq"] for each in told] == [*range(1, len(told) + 1)]
    assert client.get(f"/runs/{run}").json() == {
        "outcome": "waiting",
        "waiting": {"2/painter/1": "Hue?"},
    }
    client.post(f"/runs/{run}/answer", json={"2/painter/1": "blue"})
    more = events_in(client.get(f"/runs/{run}/events/{len(told)}").text)
    assert [each["seq"] for each in told + more] == [*range(1, len(told + more) + 1)]
    assert more[-1]["type"] == "task_completed"
    assert more[-1]["details"]["outcome"] == "completed"
    # Who comes later, or lost the connection, is told the same.
    assert events_in(client.get(f"/runs/{run}/events/3").text) == (told + more)[3:]


def test_a_run_is_stopped(client, house):
    run = begun(client)
    assert house.at_work.wait(30)
    client.post(f"/runs/{run}/stop", json={})
    house.leave.set()
    told = events_in(client.get(f"/runs/{run}/events/0").text)
    assert [each["type"] for each in told[-2:]] == ["specialist_completed", "run_stopped"]
    assert client.get(f"/runs/{run}").json()["outcome"] == "interrupted"
