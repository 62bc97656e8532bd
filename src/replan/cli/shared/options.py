"""The options that several commands share."""

from pathlib import Path
from typing import Annotated, Any

import typer

TeamFileOption = Annotated[
    Path | None,
    typer.Option(
        "--team",
        "-t",
        dir_okay=False,
        exists=True,
        help="The team file; by default the default team.",
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        envvar="REPLAN_MODEL",
        help="The host's model: offline, openai:NAME or PROVIDER:NAME; by default the team file's.",
    ),
]
BaseUrlOption = Annotated[
    str | None,
    typer.Option(envvar="REPLAN_BASE_URL", help="A server that speaks the OpenAI protocol."),
]
StorageOption = Annotated[
    str | None,
    typer.Option(
        "--storage",
        metavar="WHERE",
        help="Where runs are stored: a SQLite file, postgresql://..., or memory (not stored). "
        "The default is REPLAN_STORAGE, or else a file in your data folder.",
    ),
]
DirectoryOption = Annotated[
    Path | None,
    typer.Option("--dir", "-d", exists=True, file_okay=False, help="The folder with your files."),
]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", "-o", file_okay=False, help="The folder for reports; by default --dir."),
]
PlanOutOption = Annotated[
    Path | None,
    typer.Option(
        "--plan-out",
        "-p",
        dir_okay=False,
        help="Write the plan to this file, with marks and results.",
    ),
]
LimitOption = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        "-l",
        metavar="NAME=VALUE",
        help="A limit, such as max_model_calls=50; repeatable.",
    ),
]
LabelOption = Annotated[
    list[str] | None,
    typer.Option(
        "--label", metavar="NAME=VALUE", help="A label of the run, such as user=eva; repeatable."
    ),
]
UserOption = Annotated[
    str | None,
    typer.Option(
        "--user",
        metavar="NAME",
        help="The user whose facts a team remembers; by default your login name.",
    ),
]
GraceOption = Annotated[
    float,
    typer.Option("--grace", min=0.0, help="Seconds for running steps to end after Ctrl-C."),
]
GraceAtEndOption = Annotated[
    float,
    typer.Option(
        "--grace", min=0.0, help="Seconds for running steps to end when the server stops."
    ),
]
HostOption = Annotated[str, typer.Option("--host", help="The address to listen on.")]
PortOption = Annotated[
    int, typer.Option("--port", min=0, max=65535, help="The port; 0 means any free port.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
JsonLinesOption = Annotated[
    bool, typer.Option("--json", help="Print each event as a line of JSON.")
]
PlainOption = Annotated[
    bool, typer.Option("--plain", help="Print plain lines on a terminal, too, as in a pipe.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the answer.")]
VerboseOption = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Also show the texts of specialists and of the host."),
]
LogFileOption = Annotated[
    Path | None, typer.Option(dir_okay=False, help="Append a log to this file.")
]
RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="The id of a run or a prefix of it, or `last`.")
]
StepArgument = Annotated[int, typer.Argument(metavar="STEP", help="The number of the step.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def output_option(what: str) -> Any:
    """Return the option for the file that a command writes."""
    return typer.Option("--output", "-o", dir_okay=False, help=what)
