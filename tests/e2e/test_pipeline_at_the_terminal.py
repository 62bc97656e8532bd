"""A pipeline at the terminal: left at a question, and taken up again."""

import os
import signal

import warm
from replan.team.file_team import DEFAULT_TEAM
from terminals import REPLAN, Terminal

MODULE = """\
import os, signal
from pathlib import Path

from replan import ask_user
from replan.pipelines import (
    BaseAgent,
    InteractionUnit,
    Response,
    StateHandler,
    SubThreadAgent,
    SubThreadExecutionHandler,
    SubThreadPreparationHandler,
)


class ColourAskingHandler(StateHandler):
    async def handle(self, task, thread, agent):
        dying = Path(__file__).with_name(f"dies in {self.phase}")
        if dying.exists():
            dying.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return Response(f"{task.original_query}, {self.phase}: {ask_user('Which colour?')}")


class RoomPaintingAgent(SubThreadAgent):
    async def _initialize_interaction_units(self):
        walls = ColourAskingHandler(phase="wall_painting", next_phase="door_painting")
        doors = ColourAskingHandler(phase="door_painting")
        self.interaction_units = {
            each.phase: await InteractionUnit.create(state_handler=each) for each in (walls, doors)
        }


class RoomExecutionHandler(SubThreadExecutionHandler):
    sub_thread_agent = RoomPaintingAgent


class RoomAgent(BaseAgent):
    async def _initialize_state_handlers(self):
        both = (SubThreadPreparationHandler(), RoomExecutionHandler())
        self.state_handlers = {each.phase: each for each in both}
"""


def said_in(tmp_path, lines, *words):
    told = tmp_path / "lines.txt"
    told.write_text("".join(f"{line}\n" for line in lines))
    options = ["--dir", str(tmp_path), "--storage", str(tmp_path / "runs.db")]
    with told.open() as stdin:
        return warm.run("-m", "replan", "chat", *options, *words, stdin=stdin.fileno())


def test_a_pipeline_is_left_at_a_question_and_taken_up_again(tmp_path):
    (tmp_path / "painting.py").write_text(MODULE)
    pipeline = ["--pipeline", "painting:RoomAgent"]
    first = said_in(tmp_path, ["the kitchen", "red"], *pipeline)
    assert (first.returncode, first.stdout) == (3, "Which colour?\nWhich colour?\n"), first.stderr
    assert "--pipeline painting:RoomAgent" in first.stderr
    again = said_in(tmp_path, ["blue"], *pipeline, "--session", "last")
    assert (again.returncode, again.stdout) == (0, "the kitchen, door_painting: blue\n")
    storage = ["--storage", str(tmp_path / "runs.db")]
    listed = warm.run("-m", "replan", "runs", *storage)
    assert "completed  1/1" in listed.stdout, listed
    assert "the kitchen [session=" in listed.stdout
    threads = warm.run("-m", "replan", "show", "last", "--step", "1", *storage)
    assert "sub-thread: completed, 3 messages (wall_painting > door_painting)" in threads.stdout
    for wrong, problem in (
        (["--pipeline", "painting:Nobody"], "has no 'Nobody'"),
        (["--pipeline", "painting"], "Write module:Class"),
        (["--pipeline", "painting:Response"], "not the class of a pipeline"),
        ([*pipeline, "--job", "tea.yaml"], "has one of --team, --job and --pipeline"),
    ):
        refused = said_in(tmp_path, [], *wrong)
        assert (refused.returncode, problem in refused.stderr) == (2, True), refused.stderr


OPERATIONS = """

class OfferingAgent(RoomAgent):
    async def load_operations(self, agent=None):
        task = Task(name="paint", type=Task.TYPE_ACTION)
        return [Operation("paint", "Paints a room\\nof yours.", lambda: task)]


class BrokenAgent(RoomAgent):
    async def load_operations(self, agent=None):
        raise RuntimeError("no list")
"""


def test_help_lists_what_a_pipeline_offers(tmp_path):
    (tmp_path / "painting.py").write_text(
        f"from replan.pipelines import Operation, Task\n{MODULE}{OPERATIONS}"
    )
    for agent, line in (
        ("OfferingAgent", "- paint: Paints a room of yours."),
        ("BrokenAgent", "The pipeline could not list its operations: RuntimeError: no list"),
    ):
        told = said_in(tmp_path, ["/help"], "--pipeline", f"painting:{agent}")
        assert line in told.stdout, told
        assert "/export [FILE]" in told.stdout


def test_a_session_goes_on_only_with_what_it_began_with(tmp_path):
    (tmp_path / "painting.py").write_text(MODULE)
    (tmp_path / "tea.yaml").write_text(
        "name: tea\nslots: [{name: kind, question: Which?}]\n"
        "commands: [{name: make, needs: [kind], action: ask_user,"
        " parameters: {question: 'Hot?'}}]\n"
    )
    own, named = tmp_path / "own.yaml", tmp_path / "named.yaml"
    own.write_text(DEFAULT_TEAM.read_text())
    named.write_text(f"name: painters\n{DEFAULT_TEAM.read_text()}")
    begun = {
        "the pipeline 'painting:RoomAgent'": ["--pipeline", "painting:RoomAgent"],
        "the job 'tea'": ["--job", str(tmp_path / "tea.yaml")],
        "the default team": [],
        f"the team '{own}'": ["--team", str(own)],
        "the team 'painters'": ["--team", str(named)],
    }
    names = [*begun]
    for began, now in zip(names, [*names[1:], names[0]], strict=True):
        first = said_in(tmp_path, ["hello"], *begun[began])
        assert "--session" in first.stderr
        refused = said_in(tmp_path, ["hello"], *begun[now], "--session", "last")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert f"began with {began}, and this is {now}." in refused.stderr
        went_on = said_in(tmp_path, [], *begun[began], "--session", "last")
        assert "began with" not in went_on.stderr


def test_a_turn_that_is_killed_is_found_and_goes_on(tmp_path):
    (tmp_path / "painting.py").write_text(MODULE)
    pipeline = ["--pipeline", "painting:RoomAgent"]
    environment = {**os.environ, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
    options = ["--dir", str(tmp_path), "--storage", str(tmp_path / "runs.db"), *pipeline]

    def talk(*words):
        shown.append(Terminal((*REPLAN, "chat", *options, *words), environment))
        shown[-1].wait_for("leaves.")
        return shown[-1]

    shown = []
    try:
        # In the first turn of the session, and in a later one, which answers a question.
        for phase, said in (("wall_painting", "the kitchen"), ("door_painting", "red")):
            (tmp_path / f"dies in {phase}").touch()
            terminal = talk(*(["--session", "last"] if phase == "door_painting" else []))
            terminal.type(f"{said}\r")
            assert terminal.end() == -signal.SIGKILL
            terminal = talk("--session", "last")
            terminal.wait_for("The newest message was not answered")
            terminal.wait_for(f"> {said}")
            terminal.type("\r")
            # What was asked before is shown, too, when a session is taken up.
            terminal.wait_for("Which colour?", times=2 if said == "red" else 1)
            terminal.kill()
        ended = said_in(tmp_path, ["blue"], *pipeline, "--session", "last")
        assert ended.stdout == "the kitchen, door_painting: blue\n", ended.stderr
    finally:
        for each in shown:
            each.close()
