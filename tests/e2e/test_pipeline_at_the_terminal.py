"""A pipeline at the terminal whose turns are killed; `transcripts/chatting.md` has the others."""

import os
import signal
from pathlib import Path

from terminals import REPLAN, Terminal
from transcripts import write_files

PAGE = Path(__file__).parent / "transcripts" / "chatting.md"


def test_a_turn_that_is_killed_is_found_and_goes_on(tmp_path):
    write_files(PAGE, tmp_path)
    options = ["--dir", tmp_path, "--storage", tmp_path / "runs.db"]
    options += ["--pipeline", "painting:RoomAgent"]
    environment = {**os.environ, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
    shown = []

    def talk(*words, dies_in=""):
        command = (*REPLAN, "chat", *map(str, options), *words)
        shown.append(Terminal(command, {**environment, "KILL": dies_in}))
        shown[-1].wait_for("leaves.")
        return shown[-1]

    try:
        # In the first turn of the session, and in a later one, which answers a question.
        for phase, said in (("wall_painting", "the kitchen"), ("door_painting", "red")):
            words = ["--session", "last"] if said == "red" else []
            terminal = talk(*words, dies_in=phase)
            terminal.type(f"{said}\r")
            assert terminal.end() == -signal.SIGKILL
            terminal = talk("--session", "last")
            terminal.wait_for("The newest message was not answered")
            terminal.wait_for(f"> {said}")
            terminal.type("\r")
            # What was asked before is shown, too, when a session is taken up.
            terminal.wait_for("Which colour?", times=2 if said == "red" else 1)
            terminal.kill()
        terminal = talk("--session", "last")
        terminal.type("blue\r")
        terminal.wait_for("the kitchen, door_painting: blue")
    finally:
        for each in shown:
            each.close()
