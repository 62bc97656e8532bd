"""The example of product listings: a conversation over a real catalogue, where nothing is twice."""

import importlib
import runpy
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from replan.jobs import read_job_file
from replan.jobs.phases.planning import decompose_goals

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
    for name in {"catalogue", "service", "rules", "product_listings"} & (
        sys.modules.keys() - before
    ):
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


def outside(**fields):
    """Says that a client changes fields of its job between two turns."""

    def changed(metadata):
        metadata["context"]["job"].update(fields)

    return changed


ISSUE = {"field": "product_listing_id", "message": "it is sold.", "code": "sold"}
# What is said, what the last answer has in it, and what the listings are in the end.
SCENARIOS = {
    "a wrong value that validation finds is asked for again": (
        ["edit PL-1", outside(validation_errors=[ISSUE], phase="PLAN_GENERATION"), "hm"],
        ["it is sold.", "Which listing is it about?"],
        {"PL-1": "Desk lamp", "PL-2": "Desk lamp"},
    ),
    "without a command all begins again": (
        ["edit PL-1", outside(command="", phase="INFORMATION_COLLECTION"), "hm"],
        ["What would you like to do?"],
        {"PL-1": "Desk lamp", "PL-2": "Desk lamp"},
    ),
    "a job that jumps ahead is taken back": (
        ["edit PL-1", outside(phase="EXECUTION"), "hm"],
        ["What shall be changed?"],
        {"PL-1": "Desk lamp", "PL-2": "Desk lamp"},
    ),
    "another listing takes back the changes": (
        ["edit", "PL-7", "title: Red lamp", "PL-2", "title: Blue lamp"],
        ["The listing is changed."],
        {"PL-1": "Desk lamp", "PL-2": "Blue lamp"},
    ),
    "a listing that is corrected is the one that is changed": (
        ["edit PL-1", "listing: PL-2", "title: Blue lamp"],
        ["The listing is changed."],
        {"PL-1": "Desk lamp", "PL-2": "Blue lamp"},
    ),
    "another command keeps what it uses too": (
        ["edit PL-2", "activate"],
        ['"is_active": true'],
        {"PL-1": "Desk lamp", "PL-2": "Desk lamp"},
    ),
    "who gives nothing is left, and takes it up again": (
        ["edit PL-1", "hm", "hm", "hm", "title: Red lamp"],
        ["The listing is changed."],
        {"PL-1": "Red lamp", "PL-2": "Desk lamp"},
    ),
    "what was cancelled is not done, and a new job begins": (
        ["edit PL-1", "取消", "title: Red lamp", "publish PC-200"],
        ["The product is published."],
        {"PL-1": "Desk lamp", "PL-2": "Desk lamp", "PL-3": "Office chair"},
    ),
}


@pytest.mark.anyio
@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_scenarios_of_the_example(modules, tmp_path, scenario):
    said, told, listings = SCENARIOS[scenario]
    catalogue = importlib.import_module("catalogue").Catalogue(f"sqlite:///{tmp_path / 'l.db'}")
    for _ in range(2):
        catalogue.done("POST", ["listings"], {"product_center_id": "PC-100"}, "")
    metadata, answer = None, ""
    with importlib.import_module("service").served(catalogue, port=0) as url:
        for each in said:
            if callable(each):
                each(metadata)
            else:
                answer, metadata = await importlib.import_module("product_listings").turn(
                    url, metadata, each
                )
    rows = catalogue.listings()
    catalogue.close()
    assert [each for each in told if each in answer] == told, answer
    assert {row["product_listing_id"]: row["title"] for row in rows} == listings


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
