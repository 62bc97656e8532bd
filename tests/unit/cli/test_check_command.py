"""`replan check`: the mistakes of a plan, or what is ahead of it."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from replan.cli.main import app
from replan.plan import PlanDocument, sealed

PLAN = """\
# Trips

- [!] 1. Ask @oracle
- [ ] 2. Wait for it @oracle (after 1)
- [ ] 3. Add it up @calculator
- [ ] 4. Add more @Calculator (after 3)
- [ ] 5. Ask somebody @editor
"""
TEAM = """\
host: {model: offline}
specialists:
  - use: replan_local:calculator
  - {name: editor, intended_use: Edits texts., chat_model: offline}
limits: {max_steps: 4, step_retries: 0, max_model_calls: 90}
allow_dynamic_update: false
"""


@pytest.fixture
def files(tmp_path):
    plan, team = tmp_path / "plan.md", tmp_path / "team.yaml"
    plan.write_text(PLAN)
    team.write_text(TEAM)
    return plan, team


def check(*arguments):
    return CliRunner().invoke(app, ["check", *map(str, arguments)])


def test_a_plan_is_previewed(files):
    result = check(files[0])
    assert result.exit_code == 0
    revised = "with revisions at most 200 (max_model_calls=200)"
    assert result.stdout.splitlines() == [
        "Trips",
        "steps: 5, 4 open",
        "  [!] 1  @oracle               Ask",
        "  [ ] 2  @oracle      after 1  Wait for it",
        "  [ ] 3  @calculator           Add it up",
        "  [ ] 4  @Calculator  after 3  Add more",
        "  [ ] 5  @editor               Ask somebody",
        "width: 3 at once",
        "critical path: 3 > 4 (2 steps)",
        f"model calls, merged: 4 if all goes well, at most 102, {revised}",
        f"model calls, separate: 6 if all goes well, at most 109, {revised}",
        "tokens: no bound (max_tokens is not set)",
        "cost: no bound (max_cost is not set)",
        "time of the steps: 1800 s if every attempt takes all of its time",
        "blocked by a failed step, never started: step 2",
        "not checked without --team: whether a team has @oracle, @calculator, @editor",
    ]


def test_with_a_team_its_limits_and_names_count(files):
    plan, team = files
    result = check(plan, "--team", team)
    assert result.exit_code == 2
    lines = result.stdout.splitlines()
    stranger = "Step 2 (line 4) names @oracle, whom the team does not have."
    assert f"refused: {stranger} Use one of: @calculator, @editor." in lines
    assert "beyond max_steps=4, never started: step 5" in lines
    # No step that can start asks a model, so only the host does.
    assert "model calls: 1 if all goes well, at most 32" in lines
    plan.write_text(PLAN.replace("@oracle", "@editor"))
    assert check(plan, "--team", team).exit_code == 0


def test_lost_steps_cycles_and_unknown_names_are_told_together(files):
    plan, team = files
    plan.write_text(
        "- [ ] 1. Ask @oracel (after 3)\n- [x 2. Two @editor\n- [ ]5. Five\n"
        "- [ ] 3. Ask @editor (after 1)\n"
    )
    result = check(plan, "--team", team)
    assert result.exit_code == 2
    told = [line.removeprefix(f"{plan}:") for line in result.stdout.splitlines()]
    assert told[0].startswith("1:14: Step 1 names @oracel, whom the team does not have. Use one of")
    assert told[1].startswith("2:3: '- [x 2. Two @editor' looks like a step and cannot be read")
    assert told[2].startswith("3:3: '- [ ]5. Five' looks like a step")
    assert "wait for each other" in told[3]
    assert told[4] == "4 mistakes"
    assert check(plan).exit_code == 2


def test_what_runs_again_is_told_and_counted(files):
    plan, _ = files
    text = "- [x] 1. Ask @oracle\n- [x] 2. Wait @oracle (after 1)\n- [x] 3. Rest @oracle\n"
    plan.write_text(sealed(PlanDocument.parse(text).plan).content.replace("1. Ask", "1. Ask her"))
    lines = check(plan).stdout.splitlines()
    assert [lines[0], *lines[4:7]] == [
        "steps: 3, 2 open",
        "runs again: 1 (edited), 2 (after 1)",
        "width: 1 at once",
        "critical path: 1 > 2 (2 steps)",
    ]
    record = json.loads(check(plan, "--json").stdout)
    assert record["reruns"] == [
        {"step": 1, "reason": "edited", "causes": []},
        {"step": 2, "reason": "dependency", "causes": [1]},
    ]
    assert record["open_steps"] == 2


def test_the_offline_model_costs_nothing_and_limits_bound_the_rest(files):
    plan, team = files
    plan.write_text(PLAN.replace("@oracle", "@editor"))
    team.write_text(TEAM.replace("limits: {", "limits: {max_tokens: 5000, max_seconds: 60, "))
    lines = check(plan, "--team", team).stdout.splitlines()
    assert "tokens: at most 5000" in lines
    assert "cost: at most 0" in lines
    assert "time of the run: at most 60 s" in lines
    record = json.loads(check(plan, "--team", team, "--json").stdout)
    worst = {"model_calls": 39, "tokens": 5000, "cost": 0.0, "seconds": 60.0}
    assert record["worst_case"] == worst


def test_steps_that_ask_first_are_announced(files):
    files[0].write_text("- [x] 1. A @a (ask first)\n- [ ] 2. B @a (ask first)\n- [ ] 3. C @a\n")
    result = check(files[0])
    assert "approval: asked before step 2 begins" in result.stdout.splitlines()
    assert json.loads(check(files[0], "--json").stdout)["approvals"]["steps"] == [2]


def test_parallel_steps_that_write_the_same_are_told_and_no_mistake(files):
    files[0].write_text(
        "- [ ] 1. A @a (writes out.md)\n- [ ] 2. B @a (writes ./out.md, b.md)\n"
        "- [ ] 3. C @a (after 2; writes b.md)\n"
    )
    result = check(files[0])
    assert result.exit_code == 0
    told = [line for line in result.stdout.splitlines() if line.startswith("conflict")]
    assert told == ["conflict: steps 1, 2 may write out.md at the same time"]
    record = json.loads(check(files[0], "--json").stdout)
    assert record["conflicts"] == [{"resource": "out.md", "steps": [1, 2]}]


def test_json_says_the_same(files):
    plan, team = files
    record = json.loads(check(plan, "--team", team, "--json").stdout)
    assert record["mistakes"] == []
    assert record["critical_path"] == [3, 4]
    assert record["model_calls"]["merged"] == {"usual": 1, "unrevised": 32, "worst": 32}
    reason = "names @oracle, whom the team does not have. Use one of: @calculator, @editor."
    assert record["refusals"] == [{"step": 2, "code": "unknown_specialist", "reason": reason}]
    assert record["parsed_steps"][3] == {
        "step": 4,
        "status": "pending",
        "specialists": ["Calculator"],
        "routed_to": None,
        "after": [3],
        "condition": None,
        "text": "Add more",
    }
    assert record["parse_warnings"] == []
    plan.write_text("- [ ] 1. A (after 7)\n")
    (mistake,) = json.loads(check(plan, "--json").stdout)["mistakes"]
    assert (mistake["line"], mistake["code"]) == (1, "unknown_dependency")


def test_what_cannot_be_read_is_wrong_use(files, tmp_path):
    assert "There is no plan document" in check(tmp_path / "gone.md").stderr
    files[1].write_text("host: 3\n")
    result = check(files[0], "--team", files[1])
    assert result.exit_code == 2
    assert f"{files[1]}:1:" in result.stderr
    assert "Traceback" not in result.output


EVIL = """\
host: {model: offline, tools: ["evil:tool"]}
specialists:
  - {name: editor, intended_use: Edits texts., run: "evil:work"}
  - {name: asker, intended_use: Asks., chat_model: offline, tools: ["evil:tool"], approve: [tool]}
  - {name: graph, intended_use: Draws., invokable: "evil:work"}
"""


@pytest.fixture
def evil(files, tmp_path):
    touched = tmp_path / "touched"
    (tmp_path / "evil.py").write_text(
        f"open({str(touched)!r}, 'w').close()\ndef work(c): ...\ntool = work"
    )
    files[0].write_text("- [ ] 1. Edit it @editor\n- [ ] 2. Ask @asker\n- [ ] 3. Draw @graph\n")
    files[1].write_text(EVIL)
    yield touched
    sys.modules.pop("evil", None)


@pytest.mark.parametrize("command", [["check", "plan.md"], ["graph"]])
def test_a_team_is_looked_at_without_running_its_code(files, evil, monkeypatch, command):
    monkeypatch.chdir(files[0].parent)
    result = CliRunner().invoke(app, [*command, "--team", str(files[1])])
    assert result.exit_code == 0, result.output
    assert not evil.exists()


def test_a_check_imports_what_a_team_names_if_it_is_told_to(files, evil):
    assert check(files[0], "--team", files[1], "--import").exit_code == 0
    assert evil.exists()


def test_a_check_finds_a_module_that_is_not_there_without_importing_any(files, evil):
    files[1].write_text(EVIL.replace("evil:work", "evli:work"))
    result = check(files[0], "--team", files[1])
    assert result.exit_code == 2
    assert "there is no module 'evli'" in result.stderr
    assert "Did you mean evil?" in result.stderr
    assert not evil.exists()


def test_a_check_loads_no_framework(files):
    code = (
        "import sys; from replan.cli.main import main\n"
        "try: main()\n"
        "finally: print([n for n in sys.modules if n.startswith(('langchain', 'langgraph'))])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, "check", files[0]], capture_output=True, text=True, check=False
    )
    assert result.stdout.splitlines()[-1] == "[]"
    assert "Trips" in result.stdout


def test_what_was_read_as_text_is_told_and_the_plan_can_run(files):
    files[0].write_text("- [ ] 1. Ask @oracle\n- [ ] 2. Compare (needs all of it) @oracle\n")
    result = check(files[0])
    assert result.exit_code == 0
    warning = "warning: line 2: '(needs all of it)' looks like a dependency and was read as text"
    assert warning in result.stdout
    (told,) = json.loads(check(files[0], "--json").stdout)["parse_warnings"]
    assert told == {"line": 2, "kind": "dependency", "step": 2, "text": "(needs all of it)"}


def test_who_gets_a_step_that_names_nobody_is_told_and_nobody_is_refused(files):
    plan, team = files
    plan.write_text("- [ ] 1. Edit the texts\n")
    assert "  [ ] 1  @editor (by its card)  Edit the texts" in check(plan, "--team", team).stdout
    plan.write_text("- [ ] 1. Think about colours\n")
    result = check(plan, "--team", team)
    assert result.exit_code == 2
    assert "refused: Step 1 (line 1) names no specialist, and no card fits it." in result.stdout


def test_a_team_is_checked_alone(files):
    result = check(files[1])
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[:2] == [f"{files[1]}: no mistakes", "specialists: 2"]
    assert lines[2].startswith("  @calculator  Exact arithmetic")
    assert lines[3:5] == ["  @editor      Edits texts.", "model calls: at most 90"]
    record = json.loads(check(files[1], "--json").stdout)
    assert record["mistakes"] == []
    assert [each["name"] for each in record["specialists"]] == ["calculator", "editor"]
    assert record["limits"]["max_steps"] == 4


def test_a_team_and_a_plan_are_checked_together_in_any_order(files):
    both = check(*files)
    assert check(*reversed(files)).stdout == both.stdout
    assert both.stdout == check(files[0], "--team", files[1]).stdout
    assert both.exit_code == 2
    assert "refused: " in both.stdout


def test_all_mistakes_of_a_team_are_told_with_those_of_the_plan(files):
    plan, team = files
    plan.write_text("- [ ] 1. Ask @editor (after 7)\n")
    team.write_text("hosts: {}\nspecialists: [{local: writr}]\n")
    result = check(plan, team)
    assert result.exit_code == 2
    assert "waits for step 7" in result.stdout
    assert "hosts: there is no such field. Did you mean host?" in result.stderr
    assert "writr" in result.stderr
    told = json.loads(check(plan, team, "--json").stdout)["mistakes"]
    assert [each.get("field") for each in told][:2] == ["", "hosts"]
    assert told[1]["file"] == str(team)


def test_a_team_that_names_a_model_that_nobody_has_is_told_with_the_place(files, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    files[1].write_text(
        "host: {model: nobody:x}\n"
        "specialists:\n"
        "  - {name: a, intended_use: Asks., chat_model: 'openai:gpt'}\n"
    )
    result = check(files[1])
    assert result.exit_code == 2
    assert f"{files[1]}:1:" in result.stderr
    assert f"{files[1]}:3:" in result.stderr
    assert "OPENAI_API_KEY" in result.stderr


def test_more_than_one_plan_or_team_is_wrong_use(files):
    for arguments in ([files[0], files[0]], [files[1], files[1]], [files[1], "-t", files[1]]):
        result = check(*arguments)
        assert result.exit_code == 2
        assert "one" in result.stderr.casefold()


def test_wrong_options_of_a_steps_memory_are_told_with_their_place(tmp_path):
    plan = tmp_path / "plan.md"
    plan.write_text("- [ ] 1. Add @a\n\n  ```yaml\n  memory_mode: some\n  ```\n")
    told = check(plan)
    assert told.exit_code == 2
    assert f"{plan}:4:3: Step 1 has memory_mode: 'some', which cannot be." in told.stdout
