"""`replan init`: the first files of a new user: a team, its schema, a plan and a test that run."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from pathlib import Path
from typing import Annotated

import typer

from replan.base.errors import InputError
from replan.cli.new import starter_texts
from replan.cli.schema import schema_text
from replan.cli.shared import options
from replan.cli.shared.process import as_command

TEAM_NAME, PLAN_NAME = "team.yaml", "plan.md"


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
    from replan.base.texts.files import replace_file
    from replan.team.file_team import SCHEMA_NAME, starter_team

    made = {TEAM_NAME: starter_team(), SCHEMA_NAME: schema_text()}
    contents = made | {str(path): text for path, text in starter_texts("team").items()}
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
