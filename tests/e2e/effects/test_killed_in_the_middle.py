"""Processes that are killed by SIGKILL in the middle of an effect, and resumed by others.

The effects are counted by a process of its own, which holds one of them back: its arrival is the
instant of the kill.
"""

import json
import subprocess
from collections import Counter
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import warm

FOLDER = Path(__file__).parent
PATIENCE = 100

MIXED = "- [ ] 1. Begin @keyed\n- [ ] 2. Work @agent (after 1)\n- [ ] 3. End @keyed (after 2)\n"
UNSAFE = "- [ ] 1. Begin @keyed\n- [ ] 2. Act @unsafe (after 1)\n"


class Service:
    """The counter outside; `held` is the path of the arrival that gets no answer."""

    def __init__(self, held):
        self._process = warm.Process([FOLDER / "service.py", held], stdout=subprocess.PIPE)
        self.address = self._process.stdout.readline().strip()

    def wait_for(self, path):
        """Read arrivals until the wanted one is there."""
        for line in self._process.stdout:
            if json.loads(line)["path"] == path:
                return

    @property
    def arrivals(self):
        connection = HTTPConnection(urlsplit(self.address).netloc, timeout=PATIENCE)
        with closing(connection):
            connection.request("GET", "/")
            return [(each["path"], each["key"]) for each in json.load(connection.getresponse())]

    def close(self):
        self._process.close()


@pytest.fixture
def worlds(tmp_path):
    """A service that holds an arrival, and workers on one file."""
    services = []

    def make(plan, held, on_doubt):
        services.append(Service(held))
        return World(services[-1], tmp_path / "runs.db", plan, held, on_doubt)

    yield make
    for service in services:
        service.close()


class World:
    def __init__(self, service, file, plan, held, on_doubt):
        self.service, self.held = service, held
        self._words = [FOLDER / "worker.py", file, service.address, plan, on_doubt]

    def kill(self):
        """Start a worker and kill it while the service holds its effect."""
        with warm.Process(self._words):
            self.service.wait_for(self.held)

    def go_on(self, *answers):
        """Let another worker go on until it ends."""
        ended = warm.run(*self._words, *answers, timeout=PATIENCE)
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)

    @property
    def times(self):
        return Counter(path for path, _ in self.service.arrivals)

    def keys(self, path):
        return {key for arrived, key in self.service.arrivals if arrived == path}


def of_step(ended, step):
    return [(number, outcome) for at, number, outcome in ended["ledger"] if at == step]


@pytest.mark.parametrize("held", ["/step-1", "/after-1"])
def test_a_keyed_step_is_done_again_under_the_same_key(worlds, held):
    world = worlds("- [ ] 1. Begin @keyed\n", held, "ask")
    world.kill()
    ended = world.go_on()
    assert ended["outcome"] == "completed"
    assert len(world.keys("/step-1")) == 1
    assert world.keys("/step-1") != {""}
    assert of_step(ended, 1) == [(1, "unknown_outcome"), (2, "done")]


def test_an_unsafe_step_is_not_done_again_without_a_word(worlds):
    world = worlds(UNSAFE, "/unsafe", "fail")
    world.kill()
    ended = world.go_on()
    assert ended["outcome"] == "partial"
    assert "Step 2 at @unsafe was cut off in attempt 1" in ended["texts"]["2/unsafe"]
    assert world.times["/unsafe"] == 1
    assert of_step(ended, 2) == [(1, "failed")]
    assert of_step(ended, 1) == [(1, "done")]


def test_a_person_takes_an_unsafe_step_for_done(worlds):
    world = worlds(UNSAFE, "/unsafe", "ask")
    world.kill()
    waiting = world.go_on()
    assert waiting["outcome"] == "waiting"
    assert "Step 2 at @unsafe was cut off in attempt 1" in waiting["questions"][0]
    assert of_step(waiting, 2) == [(1, "unknown_outcome")]
    ended = world.go_on("it is done: receipt 7")
    assert ended["outcome"] == "completed"
    assert ended["texts"]["2/unsafe"] == "receipt 7"
    assert world.times["/unsafe"] == 1
    assert of_step(ended, 2) == [(1, "done")]


def test_a_person_lets_an_unsafe_step_be_done_again(worlds):
    world = worlds(UNSAFE, "/before-unsafe", "ask")
    world.kill()
    assert world.go_on()["outcome"] == "waiting"
    assert world.times["/unsafe"] == 0
    ended = world.go_on("run again")
    assert ended["outcome"] == "completed"
    assert world.times["/unsafe"] == 1
    assert of_step(ended, 2) == [(1, "unknown_outcome"), (2, "done")]


@pytest.mark.parametrize("held", ["/charge-5", "/look"])
def test_a_tool_loop_goes_on_where_it_was_killed(worlds, held):
    world = worlds(MIXED, held, "ask")
    world.kill()
    ended = world.go_on()
    assert ended["outcome"] == "completed"
    for path in ("/step-1", "/charge-5", "/step-3"):
        assert len(world.keys(path)) == 1
    assert world.times[held] == 2
    assert world.times["/step-1"] == world.times["/step-3"] == 1
    assert world.times["/mail-Ann"] == 1
    # What the model said is on record: it is asked three times, however often the process ends.
    assert world.times["/model"] == 3
    assert of_step(ended, 1) == [(1, "done")]


@pytest.mark.parametrize("held", ["/before-mail-Ann", "/mail-Ann"])
def test_an_unsafe_tool_that_was_killed_is_asked_about(worlds, held):
    world = worlds(MIXED, held, "ask")
    world.kill()
    waiting = world.go_on()
    assert waiting["outcome"] == "waiting"
    assert "The call of mail was cut off in attempt 1" in waiting["questions"][0]
    again = held == "/before-mail-Ann"
    ended = world.go_on("run again" if again else "it is done: sent")
    assert ended["outcome"] == "completed"
    assert world.times["/mail-Ann"] == 1
    assert world.times["/charge-5"] == world.times["/look"] == 1
    assert world.times["/model"] == 3
    assert of_step(ended, 2) == [(1, "unknown_outcome"), (2, "waiting"), (3, "done")]


def test_an_unsafe_tool_that_was_killed_fails_its_step(worlds):
    world = worlds(MIXED, "/mail-Ann", "fail")
    world.kill()
    ended = world.go_on()
    assert ended["outcome"] == "partial"
    assert "The call of mail was cut off in attempt 1" in ended["texts"]["2/agent"]
    assert world.times["/mail-Ann"] == 1
    assert world.times["/step-3"] == 0
    assert of_step(ended, 2) == [(1, "unknown_outcome"), (2, "failed")]
