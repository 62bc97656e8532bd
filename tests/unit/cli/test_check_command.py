"""`replan check`: the mistakes of a plan, or what is ahead of it."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from replan.cli.main import app

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
