"""`replan schema`: the JSON schema of team files and job files, for editors."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

import json
from typing import Annotated, Any

import typer

from replan.cli.shared.process import as_command


@as_command
def schema(
    *, job: Annotated[bool, typer.Option("--job", help="Print the schema of job files.")] = False
) -> None:
    """Print the JSON schema of team files, or of job files."""
    typer.echo(_job_schema_text() if job else schema_text(), nl=False)


def schema_text() -> str:
    """The JSON schema of team files."""
    from replan.team.file_team import team_schema

    return _json_text(team_schema())


def _job_schema_text() -> str:
    from replan.jobs.spec.job_file import job_schema

    return _json_text(job_schema())


def _json_text(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
