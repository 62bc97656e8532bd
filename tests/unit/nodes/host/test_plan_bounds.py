"""Plans from outside of the process tighten what the team has, and loosen nothing."""

import pytest

from replan.errors import PlanDocumentError
from replan.nodes.host.plan_bounds import check_outside_plan
from replan.plan import PlanDocument

ASKS_FIRST = "- [ ] 1. Look @a\n- [ ] 2. Send it @a (after 1; ask first)\n"


def test_a_client_may_add_the_question_and_may_not_remove_it(services):
    before = PlanDocument.parse(ASKS_FIRST).plan
    check_outside_plan(ASKS_FIRST.replace("Look @a", "Look @a (ask first)"), services(), before)
    check_outside_plan("- [ ] 1. Look @a\n", services(), before)
    with pytest.raises(PlanDocumentError, match=r"no longer \(ask first\)") as caught:
        check_outside_plan(ASKS_FIRST.replace("; ask first", ""), services(), before)
    assert caught.value.mistakes[0].field == "plan.2.ask_first"
