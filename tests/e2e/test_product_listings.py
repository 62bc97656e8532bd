"""The example of product listings: a conversation over a real catalogue, where nothing is twice."""

import importlib
import runpy
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from replan import read_job_file
from replan.jobs.phases.goals import decompose_goals

HERE = Path(__file__).parents[2] / "examples/product_listings"
TOLD = [
    "Which product shall be listed? Its id looks like PC-100.",
    "I cannot use 'PC-999' for product: the API answered 404",
    "there is no product PC-999",
    "Which product shall be listed? Its id looks like PC-100.",
    "The product is published.",
    "What shall be changed?",
    "a price is more than 0.",
    "The listing is changed.",
    "商品已启用。",
    '"title": "Red desk lamp", "price": 24.5, "description": "", "is_active": true}',
]


@pytest.fixture
def modules(monkeypatch):
    """Where the modules of the example are found, and forgotten afterwards."""
    monkeypatch.syspath_prepend(HERE)
    before = set(sys.modules)
    yield
    for name in {"catalogue", "service", "rules"} & (sys.modules.keys() - before):
        del sys.modules[name]


@pytest.fixture(params=["sqlite", "postgres"])
def dsn(request, tmp_path):
    if request.param == "postgres":
        return request.getfixturevalue("empty_database")
    return f"sqlite:///{tmp_path / 'listings.db'}"


def test_the_conversation_of_the_example_is_had(modules, monkeypatch, capsys, dsn):
    monkeypatch.setattr(sys, "argv", ["product_listings.py", "--dsn", dsn])
    runpy.run_path(str(HERE / "product_listings.py"), run_name="__main__")
    said = capsys.readouterr().out
    at = 0
    for each in TOLD:
        at = said.index(each, at) + 1


def test_a_request_with_its_key_is_done_once_however_often_it_comes(modules, dsn):
    catalogue = importlib.import_module("catalogue").Catalogue(dsn)

    def publish(number):
        try:
            return catalogue.done("POST", ["listings"], {"product_center_id": "PC-100"}, "key")
        except Exception as error:  # noqa: BLE001 - one of two at once may fail, and come again
            return type(error).__name__

    with ThreadPoolExecutor(8) as pool:
        answers = [*pool.map(publish, range(40))]
    assert len(catalogue.listings()) == 1
    assert {answer for answer in map(str, answers) if "PL-" in answer} == {str(publish(0))}
    catalogue.close()


def test_the_goals_of_the_example_are_those_of_its_design(modules):
    spec = read_job_file(HERE / "listings.yaml")
    goals = {each.name: [g.id for g in decompose_goals(spec, each.name)] for each in spec.commands}
    assert goals["publish"] == ["collect_product_center_id", "execute_publish"]
    assert goals["edit"] == ["collect_product_listing_id", "collect_product_data", "execute_edit"]
    for name in ("query", "activate", "deactivate"):
        assert goals[name] == ["collect_product_listing_id", f"execute_{name}"]
