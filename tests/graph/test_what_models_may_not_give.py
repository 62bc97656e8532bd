"""A model gives no attempts to work declared unsafe, and no work more time than the team allows."""

import pytest

from replan import Host, Limits, Specialist, Team, build_graph, run
from replan.testing import ScriptedModel, always

DONE = "---\nverdict: complete\n---\nThat was it."
CONTINUE = "---\nverdict: continue\nsuggested_action: update_plan\nupdate: Again.\n---\n"


def planned(line):
    return f"---\ncomplexity: complex\n---\n# Bills\n\n- [ ] 1. {line}\n"


class Bank:
    """Work that fails each time, and counts how often it was done."""

    def __init__(self):
        self.paid = []

    def pay(self, context):
        self.paid.append(context.task_description)
        raise ConnectionError("no receipt came back")


async def told_by(bank, given, replies, *, effects="unsafe", **limits):
    limits = Limits(**{"step_retries": 0, "max_stalls": 4, **limits})
    with ScriptedModel({"final_answer": always("Over."), **replies}) as model:
        team = [Specialist(name="pay", intended_use="Pays.", run=bank.pay, effects=effects)]
        host = Host(model=model)
        graph = build_graph(Team(host=host, specialists=team, limits=limits))
        return (await run(graph, given)).state


@pytest.mark.parametrize(("effects", "payments"), [("unsafe", 1), ("pure", 3)])
async def test_retries_in_a_models_plan_do_not_count_for_work_declared_unsafe(effects, payments):
    bank = Bank()
    replies = {"think": planned("Pay the rent @pay (retries 2)"), "feedback": DONE}
    state = await told_by(bank, "Pay the rent.", replies, effects=effects)
    assert len(bank.paid) == payments
    assert ("retries 2" in state["current_plan"].content) == (effects == "pure")
    assert any("'retries 2' does not count" in each for each in state["warnings"]) == (
        effects == "unsafe"
    )


async def test_retries_in_a_persons_document_count():
    bank = Bank()
    plan = "# Bills\n\n- [ ] 1. Pay the rent @pay (retries 2)\n"
    state = await told_by(bank, {"plan": plan}, {"feedback": DONE})
    assert len(bank.paid) == 3
    assert state["warnings"] == []


async def test_a_revision_adds_no_retries_to_work_declared_unsafe():
    bank = Bank()
    revised = CONTINUE + "# Bills\n\n- [ ] 1. Pay the rent by transfer @pay (retries 2)\n"
    replies = {"think": planned("Pay the rent @pay"), "feedback": [revised, DONE]}
    state = await told_by(bank, "Pay the rent.", replies)
    assert bank.paid == ["Pay the rent", "Pay the rent by transfer"]
    assert any("'retries 2' does not count" in each for each in state["warnings"])


async def test_a_revision_takes_a_persons_retries_to_no_other_work():
    bank = Bank()
    plan = "# Bills\n\n- [ ] 1. Pay the rent @pay (retries 1)\n"
    revised = CONTINUE + plan.replace("the rent", "9999 to somebody")
    state = await told_by(bank, {"plan": plan}, {"feedback": [revised, DONE]})
    assert bank.paid == ["Pay the rent", "Pay the rent", "Pay 9999 to somebody"]
    assert any("'retries 1' does not count" in each for each in state["warnings"])


async def test_a_revision_leaves_a_persons_retries_where_the_work_is_the_same():
    bank = Bank()
    plan = "# Bills\n\n- [ ] 1. Pay the rent @pay (retries 1)\n"
    revised = CONTINUE + plan.replace("retries 1", "priority 3; retries 1")
    state = await told_by(bank, {"plan": plan}, {"feedback": [revised, DONE]})
    assert set(bank.paid) == {"Pay the rent"}
    assert state["current_plan"].step(1).max_retries == 1
    assert state["warnings"] == []


async def test_a_models_timeout_is_at_most_that_of_the_team():
    replies = {"think": planned("Pay the rent @pay (timeout 1000000s)"), "feedback": DONE}
    state = await told_by(Bank(), "Pay the rent.", replies, step_timeout=60)
    assert state["current_plan"].step(1).timeout == 60
    assert any("'timeout 1e+06s' does not count" in each for each in state["warnings"])


async def test_a_models_revision_keeps_the_time_that_a_person_gave_and_adds_none():
    plan = "# Bills\n\n- [ ] 1. Pay the rent @pay (timeout 90s)\n"
    revised = CONTINUE + plan.replace("the rent @pay (timeout 90s)", "all @pay (timeout 900s)")
    replies = {"feedback": [revised, DONE]}
    state = await told_by(Bank(), {"plan": plan}, replies, step_timeout=60)
    assert state["current_plan"].step(1).timeout == 90
    assert state["current_plan"].version == 2


async def test_prose_between_the_steps_of_a_models_plan_is_told_and_not_asked_about():
    bank = Bank()
    revised = f"{CONTINUE}- [ ] 1. Pay it later @pay\n\nBy noon.\n\n- [ ] 2. Pay @pay\n"
    steps = "Pay the rent @pay\n\nKeep the receipt.\n\n- [ ] 2. Pay the gas @pay"
    asked = []

    def judged(request):
        asked.append(request)
        return revised if len(asked) == 1 else DONE

    state = await told_by(
        bank, "Pay the bills.", {"think": planned(steps), "feedback": always(judged)}
    )
    assert len(asked) == 2
    told = [each for each in state["warnings"] if "is in no step" in each]
    assert [each.partition("'")[2].partition("'")[0] for each in told] == [
        "Keep the receipt.",
        "By noon.",
    ]


async def test_prose_between_the_steps_of_a_persons_plan_is_not_told():
    plan = "# Bills\n\n- [ ] 1. Pay the rent @pay\n\nKeep the receipt.\n\n- [ ] 2. Pay @pay\n"
    state = await told_by(Bank(), {"plan": plan}, {"feedback": DONE})
    assert state["warnings"] == []
