"""`replan schema`: the JSON schema of team files, for editors."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

import json

import typer

from replan.cli.process import end_with


def schema() -> None:
    """Print the JSON schema of team files."""

    def printed() -> int:
        typer.echo(schema_text(), nl=False)
        return 0

    end_with(printed)


def schema_text() -> str:
    """The JSON schema of team files."""
    from replan.team.file_team import team_schema

    return json.dumps(team_schema(), indent=2, ensure_ascii=False) + "\n"
