"""Runs that are killed, stopped, asked or limited, and go on: as a person meets them."""

import json
import os
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path

from terminals import PATIENCE, Terminal

CHAIN = """\
# Four things

- [ ] 1. First @worker
- [ ] 2. Second @worker (after 1)
- [ ] 3. Beside @worker
- [ ] 4. Last @worker (after 2, 3)
"""


def test_a_killed_run_goes_on_and_does_nothing_twice(workshop):
    gate = workshop.gate(2)
    run = workshop.run(CHAIN)
    run.wait_for("[x] step 3")
    with gate.open("w"):  # opens when the step is there, behind its effect
        run.kill()
    gate.unlink()
    (listed,) = workshop.listed()
    assert (listed["outcome"], listed["steps_done"], listed["steps"]) == ("interrupted", 2, 4)
    killed = workshop.do("show", listed["run_id"]).stdout
    assert "why: its process was killed, at " in killed
    assert ", took at least " in killed
    resumed = workshop.do("resume", listed["run_id"][:8])
    assert resumed.exit_code == 0, resumed.stderr
    assert "-> step 1" not in resumed.stdout
    assert "Result 4." in resumed.stdout
    # The second step was in the middle of its work, and this kind of work may be done again.
    assert sorted(workshop.effects) == [1, 2, 2, 3, 4]
    shown = workshop.shown(listed["run_id"])
    assert shown["outcome"] == "completed"
    tries = [(each["step_id"], each["outcome"]) for each in shown["ledger"]]
    assert sorted(tries) == [
        (1, "done"),
        (2, "done"),
        (2, "unknown_outcome"),
        (3, "done"),
        (4, "done"),
    ]
    assert [each["number"] for each in shown["ledger"] if each["step_id"] == 2] == [1, 2]
    # Nobody knows when it was killed: the time until it went on is told as unknown.
    assert 0 < shown["unknown_seconds"] < shown["seconds"]
    assert shown["waiting_seconds"] == shown["idle_seconds"] == 0
    times = [datetime.fromisoformat(each["at"]) for each in shown["events"]]
    assert times == sorted(times)
    seen = workshop.do("show", listed["run_id"])
    assert "after its process had been killed, some time between " in seen.stdout
    last = json.loads(workshop.do("show", listed["run_id"], "--step", "4", "--json").stdout)
    (waited,) = [each for each in last["waits"] if each["what"] == "for step 2"]
    assert waited["seconds"] > shown["unknown_seconds"]


def test_runs_are_kept_where_the_shell_says(workshop, postgres_database):
    place = {"REPLAN_STORAGE": postgres_database}
    assert workshop.do("run", "calculate 2 + 2", **place).exit_code == 0
    (listed,) = workshop.do("runs", "--json", **place).stdout.splitlines()
    assert json.loads(listed)["outcome"] == "answered"
    assert not (workshop.folder / "data" / "replan" / "runs.db").exists()


def test_ctrl_c_lets_running_steps_end_and_starts_no_other(workshop):
    gate = workshop.gate(2)
    run = workshop.run(CHAIN, "--shutdown-timeout", PATIENCE)
    run.wait_for("-> step 2")
    run.wait_for("[x] step 3")
    run.process.send_signal(signal.SIGINT)
    run.wait_for("stopping: running steps have 60 s to end")
    gate.write_text("go on")
    assert run.end() == 130
    assert "[x] step 2" in run.text
    assert "-> step 4" not in run.text
    assert "interrupted: 3 of 4 steps done" in run.text
    assert run.text.splitlines()[-1] == f"continue with: replan resume {workshop.run_id[:8]}"
    assert workshop.do("resume", workshop.run_id).exit_code == 0
    assert sorted(workshop.effects) == [1, 2, 3, 4]


def test_ctrl_c_twice_stops_at_once(workshop):
    gate = workshop.gate(2)
    run = workshop.run(CHAIN, "--shutdown-timeout", PATIENCE)
    run.wait_for("-> step 2")
    run.process.send_signal(signal.SIGINT)
    run.wait_for("stopping")
    run.process.send_signal(signal.SIGINT)
    assert run.end() == 130
    assert "Traceback" not in run.text
    gate.unlink()
    assert workshop.do("resume", workshop.run_id).exit_code == 0


def test_sigterm_stops_after_the_grace(workshop):
    gate = workshop.gate(2)
    run = workshop.run(CHAIN, "--shutdown-timeout", 0)
    run.wait_for("-> step 2")
    run.process.terminate()
    assert run.end() == 143
    assert "Traceback" not in run.text
    assert workshop.listed()[0]["outcome"] == "interrupted"
    gate.unlink()
    assert workshop.do("resume", workshop.run_id).exit_code == 0


def test_another_command_stops_a_run(workshop):
    gate = workshop.gate(2)
    run = workshop.run(CHAIN, "--shutdown-timeout", PATIENCE)
    run.wait_for("-> step 2")
    run.wait_for("[x] step 3")
    assert workshop.do("stop", "last").stdout == f"run {workshop.run_id[:8]} is asked to stop\n"
    run.wait_for("stopping: running steps have 60 s to end")
    gate.write_text("go on")
    assert run.end() == 1
    assert "interrupted: 3 of 4 steps done" in run.text
    assert workshop.do("stop", "last").stdout.endswith(" is not at work: interrupted\n")
    assert workshop.do("resume", workshop.run_id).exit_code == 0
    assert sorted(workshop.effects) == [1, 2, 3, 4]


def test_nobody_else_works_on_a_run_that_is_at_work(workshop):
    gate = workshop.gate(1)
    run = workshop.run(CHAIN)
    run.wait_for("-> step 1")
    (listed,) = workshop.listed()
    assert listed["outcome"] == "running"
    for command in (("resume",), ("rm", "--yes")):
        refused = workshop.do(*command, listed["run_id"])
        assert refused.exit_code == 2
        assert "Another process works on run" in refused.stderr
    gate.write_text("go on")
    assert run.end() == 0


def test_json_tells_of_questions_and_how_to_go_on(workshop):
    run = workshop.run("- [ ] 1. Greet @greeter\n", "--json", kind=Terminal)
    assert run.end() == 3
    events = [json.loads(line) for line in run.text.splitlines() if line.startswith("{")]
    assert "input_requested" in {event["type"] for event in events}
    (question,) = events[-1].pop("pending_questions")
    assert (question["key"], question["text"]) == ("1/greeter/1", "Who are you?")
    run_id = workshop.run_id
    resume = f"replan resume {run_id[:8]}"
    assert events[-1] == {"type": "waiting", "run_id": run_id, "resume": resume}


def test_questions_are_asked_one_by_one_on_a_terminal(workshop):
    plan = "- [ ] 1. Ask @asker\n- [ ] 2. Greet @greeter (after 1)\n"
    run = workshop.run(plan, kind=Terminal)
    run.wait_for("Which year?")
    run.wait_for("answer (Ctrl-D to leave it open): ")
    run.type("\n")
    run.wait_for("answer (Ctrl-D to leave it open): ", times=2)
    run.type("1999\n")
    run.wait_for("step 1 asker asks: Which city?")
    assert run.text.count("step 1 asker asks: Which city?") == 1
    run.type("Paris\n")
    run.wait_for("step 2 greeter asks: Who are you?")
    run.type("\x04")
    assert run.end() == 3
    assert "  2/greeter/1: Who are you?" in run.text
    resumed = workshop.start("resume", workshop.run_id, kind=Terminal)
    resumed.wait_for("Who are you?")
    resumed.wait_for("leave it open): ")
    resumed.type("Ada\n")
    assert resumed.end() == 0
    assert "It is 1999 in Paris." in resumed.text
    assert "Thanks, Ada." in resumed.text


def test_what_was_answered_in_the_command_is_not_asked(workshop):
    assert workshop.carry_out("- [ ] 1. Ask @asker\n- [ ] 2. Greet @greeter\n").exit_code == 3
    resumed = workshop.start("resume", "last", "--answer", "2=Ada", kind=Terminal)
    resumed.wait_for("step 1 asker asks: Which year?")
    resumed.type("1999\n")
    resumed.wait_for("step 1 asker asks: Which city?")
    resumed.type("Paris\n")
    assert resumed.end() == 0
    assert "Who are you?" not in resumed.text
    assert "Thanks, Ada." in resumed.text


def test_a_question_is_answered_while_another_branch_works(workshop):
    gate = workshop.gate(2)
    run = workshop.run("- [ ] 1. Greet @greeter\n- [ ] 2. Work @worker\n", kind=Terminal)
    run.wait_for("leave it open): ")
    run.type("Ada\n")
    run.wait_until(lambda: workshop.asked == [])
    gate.write_text("go on")
    assert run.end() == 0
    assert "Thanks, Ada." in run.text


def test_a_plan_is_edited_until_it_is_right_then_approved(workshop):
    editor = workshop.write(
        "editor.sh",
        "#!/bin/sh\n"
        'if [ -e "$0.once" ]; then sed -i "s/after 9/after 1/" "$1";\n'
        'else touch "$0.once"; echo "- [ ] 5. Extra @worker (after 9)" >> "$1"; fi\n',
    )
    editor.chmod(0o755)
    run = workshop.run(CHAIN, "--approve", "always", kind=Terminal, EDITOR=str(editor))
    prompt = "[a]pprove, [e]dit, [r]eject, [q]uit and resume later: "
    run.wait_for(prompt)
    assert workshop.effects == []
    run.type("e\n")
    run.wait_for(prompt, times=2)
    assert "line 7, column " in run.text
    run.type("e\n")
    assert run.end() == 0
    assert sorted(workshop.effects) == [1, 2, 3, 4, 5]
    (update,) = workshop.shown(workshop.run_id)["history"]
    assert update["by"] == "person"


def test_a_plan_is_left_then_approved_later(workshop):
    run = workshop.run(CHAIN, "--approve", "always", kind=Terminal)
    run.wait_for("resume later: ")
    run.type("q\n")
    assert run.end() == 3
    assert f"replan resume {workshop.run_id[:8]} --answer approve" in run.text
    assert workshop.listed()[0]["outcome"] == "waiting"
    resumed = workshop.do("resume", workshop.run_id, "--answer", "approve")
    assert resumed.exit_code == 0, resumed.stderr
    assert sorted(workshop.effects) == [1, 2, 3, 4]


def test_a_rejected_plan_ends_the_run(workshop):
    run = workshop.run(CHAIN, "--approve", "always", kind=Terminal)
    run.wait_for("resume later: ")
    run.type("x\n")
    run.wait_for("Type a, e, r or q.")
    run.type("r\n")
    run.wait_for("why (empty ends the run): ")
    run.type("\n")
    assert run.end() == 1
    assert workshop.listed()[0]["outcome"] == "rejected"
    assert workshop.effects == []


def test_ctrl_c_at_a_question_leaves_it_open(workshop):
    assert workshop.carry_out("- [ ] 1. Greet @greeter\n").exit_code == 3
    asked = workshop.start("resume", workshop.run_id, kind=Terminal)
    asked.wait_for("leave it open): ")
    os.kill(asked.process.pid, signal.SIGINT)
    # Once more, while it comes to its end: that must not cost the last lines.
    os.kill(asked.process.pid, signal.SIGINT)
    assert asked.end() == 130
    assert f"continue with: replan resume {workshop.run_id[:8]} --answer TEXT" in asked.text
    assert workshop.listed()[0]["outcome"] == "waiting"
    resumed = workshop.do("resume", workshop.run_id, "--answer", "Ada")
    assert resumed.exit_code == 0, resumed.stderr


def test_the_installed_program_shows_no_warning_and_only_the_answer_if_asked(workshop):
    done = subprocess.run(
        [Path(sys.executable).with_name("replan"), *workshop.ordered(CHAIN, "--quiet")],
        env=workshop.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.startswith("4 of 4 steps are done")


def test_a_run_in_memory_is_not_kept(workshop):
    run = workshop.run("- [ ] 1. Greet @greeter\n", "--storage", "memory", kind=Terminal)
    run.wait_for("leave it open): ")
    run.type("Ada\n")
    assert run.end() == 0
    assert workshop.listed() == []
    assert workshop.do("resume", "a", "--storage", "memory").exit_code == 2


def test_removing_asks_on_a_terminal(workshop):
    assert workshop.do("run", "calculate 2 + 2").exit_code == 0
    run_id = workshop.run_id
    for answer, left in (("n", 1), ("y", 0)):
        asked = workshop.start("rm", run_id, kind=Terminal)
        asked.wait_for("Remove this run")
        asked.type(f"{answer}\n")
        assert asked.end() == 0
        assert len(workshop.listed()) == left


def test_what_another_user_asked_for_is_shown_on_a_terminal_before_it_is_done(workshop):
    assert workshop.carry_out(CHAIN, "--approve", "always").exit_code == 3
    other = {"XDG_CONFIG_HOME": str(workshop.folder / "other")}
    for answer, code, effects in (("n", 2, []), ("y", 0, [1, 2, 3, 4])):
        words = ("resume", workshop.run_id, "--answer", "approve")
        resumed = workshop.start(*words, kind=Terminal, **other)
        resumed.wait_for("Continue with these options?")
        assert "imports the team" in resumed.text
        resumed.type(f"{answer}\n")
        assert (resumed.end(), sorted(workshop.effects)) == (code, effects)
