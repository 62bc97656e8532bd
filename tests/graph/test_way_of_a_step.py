"""How far it is from the node of a step to the function of its user: a newcomer follows it."""

import sys
import threading
from pathlib import Path

import pytest

import replan
from replan import Host, Specialist, Team, build_graph, run
from replan.base.secrets.masking import KNOWN
from replan.testing import ScriptedModel
from scripts import COMPLETE, given

SOURCE = str(Path(replan.__file__).parent)
NODE = f"{SOURCE}/nodes/specialist.py"
# Here the scripted model is the user's.
GIVEN = f"{SOURCE}/testing/"
PLAN = "- [ ] 1. One @a\n"
# These only may become smaller.
MOST_FILES = {"run": 20, "chat_model": 24}


class Way:
    """The files of Replan that are entered between a step's node and what the user gave."""

    def __init__(self):
        self.files: dict[str, None] = {}
        self.is_on_way = self.is_over = False

    def enter(self, frame, event, argument):
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        if event == "call" and not self.is_over and file.startswith(SOURCE):
            self.is_over = self.is_on_way and name == "_agenerate"
            self.is_on_way = self.is_on_way or (file, name) == (NODE, "specialist")
            if self.is_on_way and not self.is_over and not file.startswith(GIVEN):
                self.files[file.removeprefix(SOURCE)] = None

    def work(self, context):
        self.is_over = True
        return "done"


@pytest.mark.parametrize("kind", MOST_FILES)
async def test_a_step_is_not_further_from_its_node_than_it_was(kind):
    way = Way()
    replies = {"feedback": COMPLETE} | ({} if kind == "run" else {"specialist": "Done."})
    with ScriptedModel(replies) as model:
        does = {"run": way.work, "chat_model": model}[kind]
        team = [Specialist(name="a", intended_use="Works.", **{kind: does})]
        graph = build_graph(Team(host=Host(model=model), specialists=team))
        # Secrets in the environment are looked for in what is told.
        KNOWN.clear()
        sys.setprofile(way.enter)
        threading.setprofile(way.enter)
        try:
            await run(graph, given(PLAN))
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    assert way.is_over
    assert len(way.files) <= MOST_FILES[kind], "\n".join(way.files)
