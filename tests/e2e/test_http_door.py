"""The door of the examples, over real HTTP: what a server of one's own needs of the run service."""

import json
import runpy
import subprocess
import threading
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

import warm
from replan import Host, Specialist, Team, ask_user, open_runtime
from replan.testing import ScriptedModel, always

EXAMPLE = Path(__file__).parents[2] / "examples" / "http_door.py"
END = {"feedback": always("---\nverdict: complete\n---\nThe end.")}
SERVER = """\
import asyncio, runpy, sys
from http.server import ThreadingHTTPServer
from pathlib import Path

from replan import Host, Specialist, Team, open_runtime
from replan.testing import ScriptedModel, always

example, folder = sys.argv[1], Path(sys.argv[2])
door = runpy.run_path(example)["Door"]
door.log_message = lambda *_: None


async def works(context):
    while not (folder / "go on").exists():
        await asyncio.sleep(0.01)
    return "done"


model = ScriptedModel({"feedback": always("---\\nverdict: complete\\n---\\nThe end.")})
team = Team(Host(model), [Specialist("worker", "Works.", run=works, effects="pure")])
with open_runtime(team, storage=folder / "runs.db") as door.runtime:
    server = ThreadingHTTPServer(("127.0.0.1", 0), door)
    print(server.server_port, flush=True)
    server.serve_forever()
"""
WIDE = {"plan": "".join(f"- [ ] {n}. Part {n} @worker\n" for n in (1, 2, 3))}
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
        "steps": {"1": "completed", "2": "waiting"},
        "waiting": {"2/painter/1": "Hue?"},
    }
    client.post(f"/runs/{run}/answer", json={"2/painter/1": "blue"})
    more = events_in(client.get(f"/runs/{run}/events/{len(told)}").text)
    assert [each["seq"] for each in told + more] == [*range(1, len(told + more) + 1)]
    assert more[-1]["type"] == "task_completed"
    assert more[-1]["outcome"] == "completed"
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


@pytest.mark.parametrize("path", ["runs/nobody", "runs/nobody/events/0"])
def test_an_unknown_run_is_not_found(client, path):
    told = client.get(path)
    assert told.status_code == 404
    assert "nobody" in told.json()["error"]
    for word in ("answer", "stop", "resume"):
        assert client.post(f"/runs/nobody/{word}", json={}).status_code == 404


def test_what_is_no_number_of_an_event_is_refused(client, house):
    house.leave.set()
    told = client.get(f"/runs/{begun(client)}/events/0", headers={"Last-Event-ID": "abc"})
    assert (told.status_code, "abc" in told.json()["error"]) == (400, True)


def test_a_request_that_does_not_say_how_long_it_is_is_refused(client):
    bare = HTTPConnection(client.base_url.host, client.base_url.port, timeout=60)
    bare.putrequest("POST", "/runs")
    bare.endheaders()
    answer = bare.getresponse()
    assert answer.status == 400
    assert json.loads(answer.read())["error"]
    bare.close()


@contextmanager
def served(folder):
    """A process of its own that serves; it ends as by a power cut."""
    words = ["-c", SERVER, str(EXAMPLE), str(folder)]
    with warm.Process(words, stdout=subprocess.PIPE) as process:
        address = f"http://127.0.0.1:{process.stdout.readline().strip()}"
        with httpx.Client(base_url=address, trust_env=False, timeout=60) as client:
            yield client


class Page:
    """A page in a browser: it knows the events that it was told, and asks for those after them."""

    def __init__(self, run):
        self.told, self.path = [], f"/runs/{run}/events/0"

    def follow(self, client, until=None):
        """Hear events until the stream ends, or so many steps run and the connection is lost."""
        last = {"Last-Event-ID": str(self.told[-1]["seq"])} if self.told else {}
        with client.stream("GET", self.path, headers=last) as following:
            for line in following.iter_lines():
                if line.startswith("data: "):
                    self.told.append(json.loads(line.removeprefix("data: ")))
                if until is not None and self.count("specialist_invoked") == until:
                    return

    def count(self, kind):
        return sum(each["type"] == kind for each in self.told)


def test_a_page_that_loses_its_connection_and_its_server_misses_and_repeats_nothing(tmp_path):
    with served(tmp_path) as client:
        run = client.post("/runs", json=WIDE).json()["run_id"]
        page = Page(run)
        page.follow(client, until=1)
        page.follow(client, until=3)
        steps = client.get(f"/runs/{run}").json()["steps"]
        assert steps == {"1": "running", "2": "running", "3": "running"}
    with served(tmp_path) as client:
        # Nobody works on it now: what is kept is told, and that is all.
        page.follow(client)
        assert client.get(f"/runs/{run}").json()["outcome"] == "interrupted"
        client.post(f"/runs/{run}/resume", json={})
        # It is taken up in the background; until then a stream ends at once.
        while page.count("specialist_invoked") < 6:
            page.follow(client, until=6)
        (tmp_path / "go on").touch()
        page.follow(client)
        everything = events_in(client.get(f"/runs/{run}/events/0").text)
    assert [each["seq"] for each in page.told] == [*range(1, len(page.told) + 1)]
    assert page.told == everything
    assert page.told[-1]["type"] == "task_completed"
    assert page.count("specialist_completed") == 3
