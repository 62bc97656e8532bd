"""`replan retry` and `replan skip`, as people use them, and killed in the middle."""

import json
import os
import signal

import pytest

from terminals import Terminal

PLAN = """\
# Move

- [ ] 1. Find a carrier @worker
- [ ] 2. Print the labels @worker (after 1; retries 0)
- [ ] 3. Open again @worker (after 2)
- [ ] 4. Pay @bank (after 1)
"""
in_both_stores = pytest.mark.parametrize("workshop", ["", "postgres_database"], indirect=True)


@in_both_stores
@pytest.mark.parametrize(
    "plan", [PLAN, f"{PLAN}- [ ] 5. Paint @greeter\n"], ids=["over", "waiting"]
)
def test_a_retry_that_is_killed_goes_on_and_does_nothing_twice(workshop, plan):
    workshop.breaks(2)
    began = workshop.carry_out(plan)
    assert began.exit_code == (3 if "greeter" in plan else 1)
    workshop.mended(2)
    gate = workshop.gate(3)
    again = workshop.start("retry", "last", "2")
    with gate.open("w"):  # opens when the step is there, behind its effect
        again.kill()
    gate.unlink()
    resumed = workshop.do("resume", "last")
    assert resumed.exit_code == began.exit_code * ("greeter" in plan), resumed.stderr
    # The third step was in the middle of its work, which may be done again.
    assert sorted(workshop.effects) == [1, 2, 2, 3, 3, 4]
    newest, *older = workshop.listed()
    assert bool(older) == ("greeter" not in plan)
    if older:
        assert newest["origin"] == older[0]["run_id"]
    else:
        shown = json.loads(workshop.do("show", "last", "--json").stdout)
        assert shown["history"][-1]["description"].startswith("Done again: step 2, by ")


def test_at_a_terminal_a_person_is_asked_before_an_effect_is_had_again(workshop):
    workshop.carry_out(PLAN)
    for answer, code in (("n\n", 2), ("y\n", 0)):
        asked = workshop.start("retry", "last", "4", kind=Terminal)
        asked.wait_for("Repeat it? [y/N]: ")
        asked.type(answer)
        assert asked.end() == code
    assert sorted(workshop.effects) == [1, 2, 3, 4, 4]


def test_a_run_that_another_process_works_on_is_left_alone(workshop):
    gate = workshop.gate(1)
    run = workshop.run(PLAN)
    with gate.open("w"):
        busy = workshop.do("retry", "last", 1)
        assert busy.exit_code == 2
        assert "Another process works on run" in busy.stderr
    assert run.end() == 0


def test_what_is_typed_after_ctrl_c_answers_no_question(workshop):
    gate = workshop.gate(1)
    run = workshop.run(f"{PLAN}- [ ] 5. Paint @greeter\n", kind=Terminal)
    run.wait_for("answer (Ctrl-D")
    # The plan stands above the question.
    shown = run.text[: run.text.index("step 5 greeter asks")]
    assert "3 Open again  waits for 2" in shown.replace("·", "")
    with gate.open("w"):
        os.kill(run.process.pid, signal.SIGINT)
        run.wait_for("stopping: running steps")
        run.type("replan skip last 4\n")
    assert run.end() == 130
    shown = json.loads(workshop.do("show", "last", "--json").stdout)
    assert [question["key"] for question in shown["pending_questions"]] == ["5/greeter/1"]
