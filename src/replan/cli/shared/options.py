"""The options that several commands share, and how their times and labels are read."""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import wraps
from inspect import Signature, signature
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer

from replan.base.errors import InputError
from replan.cli.shared.process import location_from
from replan.log.labels import checked_labels


def read_labels(options: Sequence[str]) -> dict[str, str]:
    """Read labels, each `NAME=VALUE`."""
    labels = dict[str, str]()
    for text in options:
        name, sign, value = text.partition("=")
        if not sign:
            raise InputError(f"--label {text} has no value. Write NAME=VALUE, such as user=eva.")
        if labels.setdefault(name.strip(), value.strip()) != value.strip():
            raise InputError(f"--label {name.strip()} is given twice. Give it one value.")
    return checked_labels(labels)


_AGO = re.compile(r"(?P<number>\d{1,9})\s?(?P<unit>[mhd])")
_MINUTES = {"m": 1, "h": 60, "d": 24 * 60}


def read_time(text: str, now: datetime) -> datetime:
    """Read a time: a date, with or without a time of the day, or how long ago.

    Raises:
        InputError: It is neither.
    """
    if ago := _AGO.fullmatch(text.strip()):
        try:
            return now - timedelta(minutes=int(ago["number"]) * _MINUTES[ago["unit"]])
        except OverflowError:
            return datetime.min.replace(tzinfo=UTC)
    try:
        return datetime.fromisoformat(text.strip()).astimezone()
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"--since {text} is not a time. Write 2026-01-31, 2026-01-31T09:30, 90m, 12h or 7d."
        ) from error


R = TypeVar("R")

TeamFile = Annotated[
    Path | None,
    typer.Option(
        "--team",
        "-t",
        dir_okay=False,
        exists=True,
        help="The team file; by default the default team.",
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        envvar="REPLAN_MODEL",
        help="The host's model: offline, openai:NAME or PROVIDER:NAME; by default the team file's.",
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(envvar="REPLAN_BASE_URL", help="A server that speaks the OpenAI protocol."),
]
Storage = Annotated[
    str | None,
    typer.Option(
        "--storage",
        metavar="WHERE",
        help="Where runs are stored: a SQLite file, postgresql://..., or memory (not stored). "
        "The default is REPLAN_STORAGE, or else a file in your data folder.",
    ),
]
Directory = Annotated[
    Path | None,
    typer.Option("--dir", "-d", exists=True, file_okay=False, help="The folder with your files."),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", file_okay=False, help="The folder for reports; by default --dir."),
]
PlanOut = Annotated[
    Path | None,
    typer.Option(
        "--plan-out",
        "-p",
        dir_okay=False,
        help="Write the plan to this file, with marks and results.",
    ),
]


Approval = Literal["never", "plan", "revisions", "always"]
Approve = Annotated[
    Approval | None,
    typer.Option(
        "--approve", "-a", help="Which plans need your approval; --approve alone means plan."
    ),
]
Limit = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A limit, such as max_model_calls=50; repeatable.",
    ),
]
Label = Annotated[
    list[str] | None,
    typer.Option(
        "--label", metavar="NAME=VALUE", help="A label of the run, such as user=eva; repeatable."
    ),
]
User = Annotated[
    str | None,
    typer.Option(
        "--user",
        metavar="NAME",
        help="The user whose facts a team remembers; by default your login name.",
    ),
]
Grace = Annotated[
    float,
    typer.Option(
        "--shutdown-timeout", min=0.0, help="Seconds for running steps to end after Ctrl-C."
    ),
]
GraceAtEnd = Annotated[
    float,
    typer.Option(
        "--shutdown-timeout",
        min=0.0,
        help="Seconds for running steps to end when the server stops.",
    ),
]
Port = Annotated[
    int, typer.Option("--port", min=0, max=65535, help="The port; 0 means any free port.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
JsonRows = Annotated[bool, typer.Option("--json", help="Print one line of JSON for each.")]
Most = Annotated[int, typer.Option("--limit", "-n", min=1, help="How many to list.")]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="WHEN",
        help="Only runs that began since then: 2026-01-31, or 90m, 12h, 7d ago.",
    ),
]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite existing files.")]
JsonLines = Annotated[bool, typer.Option("--json", help="Print each event as a line of JSON.")]
Plain = Annotated[
    bool, typer.Option("--plain", help="Print plain lines on a terminal, too, as in a pipe.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the answer.")]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Also show the texts of specialists and of the host."),
]
LogFile = Annotated[Path | None, typer.Option(dir_okay=False, help="Append a log to this file.")]
Run = Annotated[
    str, typer.Argument(metavar="RUN", help="The id of a run or a prefix of it, or `last`.")
]
Step = Annotated[int, typer.Argument(metavar="STEP", help="The number of the step.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


@dataclass(frozen=True, kw_only=True)
class Places:
    """The files of a run: its team, the folder that it reads, and what it writes."""

    team: TeamFile = None
    directory: Directory = None
    out: Out = None
    plan_out: PlanOut = None


@dataclass(frozen=True, kw_only=True)
class Serving:
    """Where a server listens, who may call it, and where its runs are stored."""

    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1"
    port: Port = 8321
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--allowed-host",
            metavar="HOST",
            help="A host name under which the server is reached; repeatable.",
        ),
    ] = None
    tokens: Annotated[
        Path | None,
        typer.Option(
            "--tokens",
            metavar="FILE",
            help="The file of tokens; else REPLAN_TOKEN, or a token that is made up and printed.",
        ),
    ] = None
    grace: GraceAtEnd = 10.0
    storage: Storage = None

    @property
    def options(self) -> dict[str, Any]:
        """These options as a server takes them."""
        listens = {"host": self.host, "port": self.port, "names": self.name or []}
        served = {"tokens": self.tokens, "grace": self.grace, "environment": os.environ}
        return {**listens, **served, **location_from(self.storage).storage_options}


def output_option(what: str) -> Any:
    """Return the option for the file that a command writes."""
    return typer.Option("--output", "-o", dir_okay=False, help=what)


def with_options(
    name: str, make: Callable[..., Any], *left_out: str
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Give a command the options of `make`, and what `make` returns for them as an argument.

    Args:
        name: The argument.
        make: A function or a class whose parameters are options.
        left_out: Options that the command does not have.
    """
    parameters = signature(make, eval_str=True).parameters.values()
    shared = [parameter for parameter in parameters if parameter.name not in left_out]

    def with_shared(command: Callable[..., R]) -> Callable[..., R]:
        parameters = signature(command, eval_str=True).parameters.values()
        every = [*(parameter for parameter in parameters if parameter.name != name), *shared]

        @wraps(command)
        def called(**arguments: Any) -> R:
            made = make(**{parameter.name: arguments.pop(parameter.name) for parameter in shared})
            return command(**arguments, **{name: made})

        # Typer reads the options of a command from both.
        called.__dict__["__signature__"] = Signature(every)
        called.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
        return called

    return with_shared
