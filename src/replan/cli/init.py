"""`replan init`: the first files of a new user: a team, its schema, a plan and a test that run."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from pathlib import Path
from typing import Annotated

import typer

from replan.cli.schema import schema_text
from replan.cli.shared import options
from replan.cli.shared.process import as_command
from replan.errors import InputError

TEAM_NAME, PLAN_NAME, TEST_NAME = "team.yaml", "plan.md", "test_team.py"

_PLAN = """\
# Check the running costs

Change the steps, then try `replan check plan.md --team team.yaml` and
`replan run plan.md --team team.yaml --plan-out plan.md`. A step with `[ ]` is open;
one with `[x]` is done, and its result stands below it.

- [ ] 1. calculate 4 * 1250 + 3 * 480 @calculator
- [ ] 2. calculate (4 * 1250 + 3 * 480) / 12 @calculator
- [ ] 3. write report @writer (after 1, 2)
"""

_TEST = """\
\"\"\"Tests of the team, which need no model and no key: `pip install pytest`, then `pytest`.\"\"\"

import os
from pathlib import Path

from replan import build_graph, run_sync
from replan.team.team_file import read_team_file

HERE = Path(__file__).parent


def test_the_plan_is_done(tmp_path):
    team = read_team_file(HERE / "team.yaml", os.environ, out=tmp_path)
    graph = build_graph(team.config, models=team.models)
    result = run_sync(graph, {"plan": (HERE / "plan.md").read_text(encoding="utf-8")})
    assert result.outcome == "completed"
    assert "536.666" in result.results[2].text
"""


@as_command
def init(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", file_okay=False, help="The folder to write into.")
    ] = Path(),
    *,
    force: options.Force = False,
) -> None:
    """Create a starter team: team.yaml, its JSON schema for editors, a plan, and a test."""
    typer.echo(write_starter(directory, force=force), nl=False)


def write_starter(directory: Path, *, force: bool) -> str:
    """Write the files and report them."""
    from replan.base.texts.whole_file import replace_file
    from replan.team.file_team import SCHEMA_NAME, starter_team

    contents = {
        TEAM_NAME: starter_team(),
        SCHEMA_NAME: schema_text(),
        PLAN_NAME: _PLAN,
        TEST_NAME: _TEST,
    }
    there = [name for name in contents if (directory / name).exists()]
    if there and not force:
        raise InputError(
            f"'{directory}' has {', '.join(there)} already; nothing was written. "
            "Choose another folder, or overwrite the files with --force."
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in contents.items():
            replace_file((directory / name).resolve(), text.encode())
    except OSError as error:
        raise InputError(f"The files cannot be written: {error}.") from error
    team, plan = directory / TEAM_NAME, directory / PLAN_NAME
    written = "".join(f"{directory / name}\n" for name in contents)
    return f"{written}Now try: replan run {plan} --team {team}\n"
