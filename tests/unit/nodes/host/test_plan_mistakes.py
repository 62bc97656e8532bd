"""What a model is told of its plan before it counts."""

import pytest

from replan.nodes.host.plan_texts import mistakes_in
from replan.plan import PlanDocument
from replan.state.team import SpecialistCard

TEAM = (SpecialistCard(name="data_analyst", intended_use="Queries tables."),)


@pytest.mark.parametrize("name", ["data_analyst", "**Data_Analyst**"])
def test_a_name_that_was_broken_off_the_line_of_a_step_is_told(name):
    text = f"- [ ] 1. Calculate the cost\n      {name}\n\n  By month.\n"
    told = "\n".join(mistakes_in(text, PlanDocument.recover(text), TEAM))
    assert "line 1: step 1 says nobody; write @name" in told
    plain = "- [ ] 1. Calculate the cost\n\n  As a data_analyst would.\n"
    assert list(mistakes_in(plain, PlanDocument.recover(plain), TEAM)) == []


def test_a_box_without_its_dash_below_a_step_is_told():
    text = "- [ ] 1. Calculate the cost @data_analyst\n  [ ] 2. Draw it *data_analyst\n"
    told = "\n".join(mistakes_in(text, PlanDocument.recover(text), TEAM))
    assert "line 2: '[ ] 2. Draw it *data_analyst' is read as text, no step" in told
