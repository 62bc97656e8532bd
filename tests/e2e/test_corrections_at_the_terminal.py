"""`replan retry` and `replan skip`, as people use them, and killed in the middle."""

import json
import os
import signal
from itertools import count

import pytest
from typer.testing import CliRunner

from replan.cli.main import app
from terminals import REPLAN, Pipe, Terminal

WORKERS = """\
from pathlib import Path

from replan import ask_user

HERE = Path(__file__).parent


def work(context):
    step = context.plan_step.id
    with (HERE / "effects").open("a") as effects:
        effects.write(f"{step}\\n")
    if (HERE / f"gate-{step}").exists():
        (HERE / f"gate-{step}").read_text()
    if (HERE / f"broken-{step}").exists():
        raise ValueError("out of paper")
    return f"Result {step}."


def ask(context):
    return f"It is {ask_user('Which colour?')}."
"""
TEAM = """\
host: {model: offline}
specialists:
  - {name: worker, intended_use: Works., run: 'WORKERS:work', effects: pure}
  - {name: bank, intended_use: Pays., run: 'WORKERS:work', effects: unsafe}
  - {name: asker, intended_use: Asks., run: 'WORKERS:ask', effects: pure}
"""
PLAN = """\
# Move

- [ ] 1. Find a carrier @worker
- [ ] 2. Print the labels @worker (after 1; retries 0)
- [ ] 3. Open again @worker (after 2)
- [ ] 4. Pay @bank (after 1)
"""
_numbers = count()


class Shop:
    """A folder with a team whose effects are counted."""

    def __init__(self, folder, storage):
        self.folder, self.programs = folder, []
        self.environment = {
            "XDG_DATA_HOME": str(folder / "data"),
            **({"REPLAN_STORAGE": storage} if storage else {}),
        }
        # A name of its own: other workers are imported in this process, too.
        workers = f"correcting_workers_{next(_numbers)}"
        (folder / f"{workers}.py").write_text(WORKERS)
        (folder / "team.yaml").write_text(TEAM.replace("WORKERS", workers))
        (folder / "plan.md").write_text(PLAN)

    def breaks(self, step):
        (self.folder / f"broken-{step}").touch()

    def fixed(self, step):
        (self.folder / f"broken-{step}").unlink()

    @property
    def effects(self):
        return [int(line) for line in (self.folder / "effects").read_text().split()]

    def do(self, *words):
        return CliRunner().invoke(app, [*map(str, words)], env=self.environment)

    def begin(self, plan=PLAN):
        (self.folder / "plan.md").write_text(plan)
        return self.do("run", self.folder / "plan.md", "--team", self.folder / "team.yaml")

    def start(self, *words, kind=Pipe):
        environment = {**os.environ, **self.environment, "TERM": "xterm-256color"}
        program = kind([*REPLAN, *map(str, words)], environment)
        self.programs.append(program)
        return program

    def runs(self):
        return [json.loads(line) for line in self.do("runs", "--json").stdout.splitlines()]


@pytest.fixture
def shop(tmp_path, request):
    storage = request.getfixturevalue(request.param) if getattr(request, "param", "") else ""
    made = Shop(tmp_path, storage)
    yield made
    for program in made.programs:
        program.close()


in_both_stores = pytest.mark.parametrize("shop", ["", "postgres_database"], indirect=True)


@in_both_stores
@pytest.mark.parametrize("plan", [PLAN, f"{PLAN}- [ ] 5. Paint @asker\n"], ids=["over", "waiting"])
def test_a_retry_that_is_killed_goes_on_and_does_nothing_twice(shop, plan):
    shop.breaks(2)
    began = shop.begin(plan)
    assert began.exit_code == (3 if "asker" in plan else 1)
    shop.fixed(2)
    gate = shop.folder / "gate-3"
    os.mkfifo(gate)
    again = shop.start("retry", "last", "2")
    with gate.open("w"):  # opens when the step is there, behind its effect
        again.kill()
    gate.unlink()
    resumed = shop.do("resume", "last")
    assert resumed.exit_code == began.exit_code * ("asker" in plan), resumed.stderr
    # The third step was in the middle of its work, which may be done again.
    assert sorted(shop.effects) == [1, 2, 2, 3, 3, 4]
    newest, *older = shop.runs()
    assert bool(older) == ("asker" not in plan)
    if older:
        assert newest["origin"] == older[0]["run_id"]
    else:
        shown = json.loads(shop.do("show", "last", "--json").stdout)
        assert shown["history"][-1]["description"].startswith("Done again: step 2, by ")


def test_an_effect_is_not_had_again_without_a_word(shop):
    assert shop.begin().exit_code == 0
    refused = shop.do("retry", "last", 1)
    assert refused.exit_code == 2
    assert "step 4 at @bank (unsafe) was done. Confirm it with --yes." in refused.stderr
    assert len(shop.runs()) == 1
    assert shop.do("retry", "last", 1, "--yes").exit_code == 0
    assert sorted(shop.effects) == [1, 1, 2, 2, 3, 3, 4, 4]


def test_at_a_terminal_a_person_is_asked_before_an_effect_is_had_again(shop):
    shop.begin()
    for answer, code in (("n\n", 2), ("y\n", 0)):
        asked = shop.start("retry", "last", "4", kind=Terminal)
        asked.wait_for("Repeat it? [y/N]: ")
        asked.type(answer)
        assert asked.end() == code
    assert sorted(shop.effects) == [1, 2, 3, 4, 4]


def test_a_step_is_left_out_and_the_answer_says_so(shop):
    shop.breaks(2)
    assert shop.begin().exit_code == 1
    skipped = shop.do("skip", "last", 2)
    assert skipped.exit_code == 0, skipped.stderr
    assert "step 2 is left out, by " in skipped.stdout
    assert "**Not done:**\n\n- 2. Print the labels: Skipped by " in skipped.stdout
    new, old = shop.runs()
    assert new["origin"] == old["run_id"]
    shown = shop.do("show", "last").stdout
    assert f"continues from run {old['run_id'][:8]}: step 2 is left out, by " in shown
    assert sorted(shop.effects) == [1, 2, 3, 4]


def test_what_cannot_be_done_is_one_line_and_changes_nothing(shop):
    assert shop.begin().exit_code == 0
    for words, problem in (
        (("retry", "last", 9), "This run has no step 9. Its steps: 1, 2, 3, 4."),
        (("skip", "last", 2), "Step 2 is completed, so there is nothing to skip."),
    ):
        done = shop.do(*words)
        assert (done.exit_code, done.stderr) == (2, f"replan: {problem}\n")
    assert len(shop.runs()) == 1


def test_a_run_that_another_process_works_on_is_left_alone(shop):
    gate = shop.folder / "gate-1"
    os.mkfifo(gate)
    run = shop.start("run", shop.folder / "plan.md", "--team", shop.folder / "team.yaml")
    with gate.open("w"):
        busy = shop.do("retry", "last", 1)
        assert busy.exit_code == 2
        assert "Another process works on run" in busy.stderr
    assert run.end() == 0


def test_what_is_typed_after_ctrl_c_answers_no_question(shop):
    gate = shop.folder / "gate-1"
    os.mkfifo(gate)
    (shop.folder / "plan.md").write_text(f"{PLAN}- [ ] 5. Paint @asker\n")
    plan, team = shop.folder / "plan.md", shop.folder / "team.yaml"
    run = shop.start("run", plan, "--team", team, kind=Terminal)
    run.wait_for("answer (Ctrl-D")
    # The plan stands above the question.
    shown = run.text[: run.text.index("step 5 asker asks")]
    assert "3 Open again  waits for 2" in shown.replace("·", "")
    with gate.open("w"):
        os.kill(run.process.pid, signal.SIGINT)
        run.wait_for("stopping: running steps")
        run.type("replan skip last 4\n")
    assert run.end() == 130
    shown = json.loads(shop.do("show", "last", "--json").stdout)
    assert [question["key"] for question in shown["pending_questions"]] == ["5/asker/1"]


def test_a_step_that_is_not_there_is_refused_before_any_model_is_built(shop, monkeypatch):
    assert shop.begin().exit_code == 0
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    keyed = shop.folder / "keyed.yaml"
    text = (shop.folder / "team.yaml").read_text()
    keyed.write_text(text.replace("model: offline", "model: 'openai:some'"))
    refused = shop.do("retry", "last", "99", "--yes", "--team", keyed)
    assert (refused.exit_code, "99" in refused.stderr) == (2, True)
    assert "OPENAI" not in refused.stderr
