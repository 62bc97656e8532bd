"""A job that is killed while it publishes: there is one listing, in whatever form it runs."""

import importlib
import json
import os
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue

import pytest

import warm

ROOT = Path(__file__).parents[2]
PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
from listing_jobs import Errand, work
work(Errand(**json.loads(sys.argv[2])))
"""


@pytest.fixture
def stores(request, tmp_path):
    """Where runs and the catalogue are kept."""
    if request.param == "postgres":
        dsn = request.getfixturevalue("postgres_database")
        return dsn, dsn
    return str(tmp_path / "runs.db"), f"sqlite:///{tmp_path / 'catalogue.db'}"


@pytest.fixture
def example(monkeypatch):
    """Gives modules of the example, which are forgotten afterwards."""
    monkeypatch.syspath_prepend(ROOT / "examples/product_listings")
    before = set(sys.modules)
    yield importlib.import_module
    for name in {"catalogue", "service"} & (sys.modules.keys() - before):
        del sys.modules[name]


@dataclass
class Killer:
    """Kills a process at a moment of its first request."""

    moment: str = ""
    pids: Queue = field(default_factory=Queue)
    keys: list[str] = field(default_factory=list)

    def meets(self, moment):
        if moment == self.moment:
            self.moment = ""
            os.kill(self.pids.get(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("form", "stores", "moment"),
    [
        ("agent", "sqlite", "before it is answered"),
        ("plan", "postgres", "before it is answered"),
        ("flow", "sqlite", "before it is done"),
    ],
    indirect=["stores"],
)
def test_there_is_one_listing_when_the_process_is_killed(stores, example, tmp_path, form, moment):
    where, dsn = stores
    killer = Killer(moment)

    class Shop(example("catalogue").Catalogue):
        def done(self, method, path, given, key):
            killer.keys.append(key)
            killer.meets("before it is done")
            answer = super().done(method, path, given, key)
            killer.meets("before it is answered")
            return answer

    shop = Shop(dsn)
    with example("service").served(shop, port=0) as url:
        errand = {"where": where, "url": url, "folder": str(tmp_path)}
        order = json.dumps({**errand, "form": form, "name": form})
        words = ("-c", PROGRAM, ROOT / "tests", order)
        with warm.Process(words) as process:
            killer.pids.put(process.pid)
            assert process.wait() == -signal.SIGKILL
        assert warm.run(*words).returncode == 0
        assert len(shop.listings()) == 1
        assert len(killer.keys) == 2
        assert len(set(killer.keys)) == 1
    shop.close()
