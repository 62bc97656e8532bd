"""A class that moved comes back from checkpoints that name its older place."""

from importlib import import_module

import ormsgpack
import pytest
from langgraph.types import Overwrite

from old_storage import FORMATS, SAMPLES
from replan import SpecialistResult, TaskPlan
from replan.adapters.storage.stored_values.moved_names import MOVED, renamed
from replan.adapters.storage.stored_values.serializer import state_types, strict_serializer
from replan.plan.model import PlanStep, StepStatus

PLAN = TaskPlan(steps=(PlanStep(id=1, description="One", status=StepStatus.FAILED),))
NESTED = {"a": [Overwrite({"1/a": SpecialistResult()}), PLAN], 3: PLAN, "b": StepStatus.FAILED}
THERE = {
    ("replan.older.plan", "Plan"): ("replan.plan.model", "TaskPlan"),
    ("replan.older.plan", "Status"): ("replan.plan.model", "StepStatus"),
    ("replan.older", "Result"): ("replan.state.results", "SpecialistResult"),
}
BACK = {now: older for older, now in THERE.items()}


def aged(value):
    """Store a value as it was stored when its classes had other places."""
    kind, packed = strict_serializer().dumps_typed(value)
    return kind, renamed(packed, BACK)


@pytest.fixture
def moved(monkeypatch):
    for older, now in THERE.items():
        monkeypatch.setitem(MOVED, older, now)


@pytest.mark.parametrize("value", [PLAN, NESTED, StepStatus.FAILED], ids=["", "nested", "name"])
def test_a_value_whose_class_moved_comes_back_equal(value, moved, caplog):
    assert b"replan.older" in aged(value)[1]
    assert b"TaskPlan" not in aged(value)[1]
    assert strict_serializer().loads_typed(aged(value)) == value
    assert caplog.records == []


def test_without_the_table_it_is_no_value_of_ours():
    """So that the test above can fail."""
    assert strict_serializer().loads_typed(aged(PLAN)) == PLAN.model_dump(mode="json")


def test_what_names_no_older_place_is_left_as_it_is():
    packed = strict_serializer().dumps_typed(PLAN)[1]
    assert renamed(packed, THERE) is packed
    texts = ormsgpack.packb(["replan.older.plan", "Plan", {"a": b"replan.older"}])
    assert renamed(texts, THERE) == texts


def test_the_table_leads_to_nothing_that_is_not_on_the_list(monkeypatch, tmp_path):
    monkeypatch.setitem(MOVED, ("replan.older.plan", "Plan"), ("os", "system"))
    stored = aged(PLAN)
    assert strict_serializer().loads_typed(stored) == PLAN.model_dump(mode="json")


@pytest.mark.parametrize("number", FORMATS)
def test_every_class_that_a_format_has_stored_is_known_or_has_moved(number):
    for line in (SAMPLES / f"format_{number}" / "classes").read_text().split():
        module, _, name = line.rpartition(".")
        module, name = MOVED.get((module, name), (module, name))
        kind = getattr(import_module(module), name)
        assert kind in state_types(), f"enter {line} into MOVED, or take it out of {number}/classes"
