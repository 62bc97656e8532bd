"""A folder with a team whose effects can be counted, and the commands of people who work in it."""

import json
import os
from itertools import count
from pathlib import Path

from typer.testing import CliRunner

from replan.cli.main import app
from terminals import REPLAN, Pipe

TEAM = Path(__file__).with_name("workshop_team")
_numbers = count()


class Workshop:
    """A folder with a team whose effects can be counted, and programs that work in it."""

    def __init__(self, folder: Path, storage: str = ""):
        self.folder = folder
        self.started: list[Pipe] = []
        self.own = {"XDG_DATA_HOME": str(folder / "data")}
        if storage:
            self.own["REPLAN_STORAGE"] = storage
        terminal = {"TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"}
        self.environment = {**os.environ, **self.own, **terminal}
        for name in ("COLUMNS", "LINES", "NO_COLOR"):
            self.environment.pop(name, None)
        # A name of its own: other workshops' workers are imported in this process too.
        workers = f"workers_{next(_numbers)}"
        self.write(f"{workers}.py", (TEAM / "workers.py").read_text())
        self.write("team.yaml", (TEAM / "team.yaml").read_text().replace("workers:", f"{workers}:"))

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def gate(self, step):
        """A gate that the step waits at until it is opened."""
        path = self.folder / f"gate-{step}"
        os.mkfifo(path)
        return path

    def breaks(self, step):
        self.write(f"broken-{step}", "")

    def mended(self, step):
        (self.folder / f"broken-{step}").unlink()

    @property
    def effects(self):
        path = self.folder / "effects"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def start(self, *words, kind=Pipe, **variables):
        program = kind([*REPLAN, *map(str, words)], {**self.environment, **variables})
        self.started.append(program)
        return program

    def ordered(self, plan, *words):
        """The command that carries out a plan."""
        path, team = self.write("plan.md", plan), self.folder / "team.yaml"
        return ("run", path, "--team", team, *words)

    def run(self, plan, *words, **options):
        """Start to carry out a plan, in a process that can be killed, stopped and typed to."""
        return self.start(*self.ordered(plan, *words), **options)

    def carry_out(self, plan, *words):
        """Carry out a plan, as far as it goes by itself."""
        return self.do(*self.ordered(plan, *words))

    def do(self, *words, **variables):
        """Do a command to its end, in this process, and give what it wrote."""
        return CliRunner().invoke(app, [*map(str, words)], env={**self.own, **variables})

    def listed(self):
        return [json.loads(line) for line in self.do("runs", "--json").stdout.splitlines()]

    def shown(self, run_id):
        return json.loads(self.do("show", run_id, "--json").stdout)

    @property
    def run_id(self):
        (run,) = self.listed()
        return run["run_id"]

    @property
    def asked(self):
        """What the run waits for, as it is on record."""
        return self.shown(self.run_id)["pending_questions"]
