"""A pipeline at the terminal: left at a question, and taken up again."""

import warm

MODULE = """\
from replan import (
    BaseAgent, InteractionUnit, Response, StateHandler, SubThreadAgent,
    SubThreadExecutionHandler, SubThreadPreparationHandler, ask_user,
)


class ColourAskingHandler(StateHandler):
    async def handle(self, task, thread, agent):
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


def said(tmp_path, lines, *words):
    told = tmp_path / "lines.txt"
    told.write_text("".join(f"{line}\n" for line in lines))
    options = ["--dir", str(tmp_path), "--storage", str(tmp_path / "runs.db")]
    with told.open() as stdin:
        return warm.run("-m", "replan", "chat", *options, *words, stdin=stdin.fileno())


def test_a_pipeline_is_left_at_a_question_and_taken_up_again(tmp_path):
    (tmp_path / "painting.py").write_text(MODULE)
    pipeline = ["--pipeline", "painting:RoomAgent"]
    first = said(tmp_path, ["the kitchen", "red"], *pipeline)
    assert (first.returncode, first.stdout) == (3, "Which colour?\nWhich colour?\n"), first.stderr
    assert "--pipeline painting:RoomAgent" in first.stderr
    again = said(tmp_path, ["blue"], *pipeline, "--session", "last")
    assert (again.returncode, again.stdout) == (0, "the kitchen, door_painting: blue\n")
    for wrong, problem in (
        (["--pipeline", "painting:Nobody"], "has no 'Nobody'"),
        (["--pipeline", "painting"], "Write module:Class"),
        (["--pipeline", "painting:Response"], "not the class of a pipeline"),
        ([*pipeline, "--job", "tea.yaml"], "a team or a job or a pipeline"),
    ):
        refused = said(tmp_path, [], *wrong)
        assert (refused.returncode, problem in refused.stderr) == (2, True), refused.stderr
