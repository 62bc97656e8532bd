"""The options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

TeamFileOption = Annotated[
    Path | None,
    typer.Option(
        "--team", "-t", dir_okay=False, exists=True, help="A team file; else the default team."
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        envvar="REPLAN_MODEL",
        help="The host's model: offline, openai:NAME, provider:NAME; else the team file's.",
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
        help="Where runs are kept: a SQLite file, postgresql://..., or memory (not kept); "
        "else REPLAN_STORAGE, else a file in your data folder.",
    ),
]
DirectoryOption = Annotated[
    Path | None,
    typer.Option("--dir", "-d", exists=True, file_okay=False, help="The folder with your files."),
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", file_okay=False, help="The folder for reports; else the one of --dir."
    ),
]
PlanOutOption = Annotated[
    Path | None,
    typer.Option(
        "--plan-out", "-p", dir_okay=False, help="Write the plan here, with marks and results."
    ),
]
LimitOption = Annotated[
    list[str] | None,
    typer.Option(
        "--limit", "-l", metavar="NAME=VALUE", help="A limit, such as max_model_calls=50."
    ),
]
LabelOption = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="NAME=VALUE", help="A label of the run, such as user=eva."),
]
UserOption = Annotated[
    str | None,
    typer.Option(
        "--user", metavar="NAME", help="Whose facts a team remembers; else your login name."
    ),
]
GraceOption = Annotated[
    float, typer.Option("--grace", min=0.0, help="Seconds that running steps get at Ctrl-C.")
]
GraceAtEndOption = Annotated[
    float, typer.Option("--grace", min=0.0, help="Seconds that running steps get at the end.")
]
HostOption = Annotated[str, typer.Option("--host", help="The address to listen on.")]
PortOption = Annotated[
    int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes a free one.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
JsonLinesOption = Annotated[
    bool, typer.Option("--json", help="Print each event as a line of JSON.")
]
PlainOption = Annotated[
    bool, typer.Option("--plain", help="Print plain lines on a terminal, as into a pipe.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print the answer alone.")]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", help="Show what specialists and the host say, too.")
]
LogFileOption = Annotated[
    Path | None, typer.Option(dir_okay=False, help="Write a log here, at its end.")
]
RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="A run's id or its beginning, or `last`.")
]
