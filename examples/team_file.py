"""A team from a YAML file, opened from Python.

    python examples/team_file.py

The same as `replan run ... --team examples/teams/deadline_team.yaml`. The file names a function of
the module beside it and a ready specialist (extra `local`). Its host is the offline model;
REPLAN_MODEL puts another one in its place.
"""

import os
import tempfile
from pathlib import Path

from replan import TeamFileError, build_graph, run_sync
from replan.team.team_file import read_team_file

TEAMS = Path(__file__).parent / "teams"

team = read_team_file(TEAMS / "deadline_team.yaml", os.environ)
team = team.with_model(os.environ.get("REPLAN_MODEL"))
print([specialist.name for specialist in team.config.specialists])
request = "Count the working days from 2026-03-02 to 2026-04-10 @calendar"
result = run_sync(build_graph(team.config, models=team.models), request)
print(result.text)

# All mistakes of a file are reported together, with line, field and fix.
with tempfile.TemporaryDirectory() as folder:
    wrong = Path(folder, "team.yaml")
    member = "{use: 'replan_local:anlyst'}"
    wrong.write_text(f"host: {{model: offline}}\nspecialists: [{member}]\n")
    try:
        read_team_file(wrong, os.environ)
    except TeamFileError as error:
        for mistake in error.mistakes:
            print(f"line {mistake.line}: {mistake}")
