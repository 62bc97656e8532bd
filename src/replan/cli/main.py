"""The `replan` program; nothing heavy is imported before a command needs it."""
# ruff: noqa: PLC0415 - each command imports what it needs, so that the others stay light

import logging
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from importlib.metadata import version
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from replan.cli.exits import INTERRUPTED, WRONG_USE

app = typer.Typer(
    name="replan",
    help="Plan-driven work with a team of specialists.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

TeamFileOption = Annotated[
    Path | None,
    typer.Option("--team", dir_okay=False, exists=True, help="A team file; else the local team."),
]


class DrawingFormat(StrEnum):
    """How a graph is drawn."""

    MERMAID = "mermaid"
    ASCII = "ascii"


def main() -> None:
    """Start the program; see the exit codes of `replan run --help`."""
    for output in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows a question mark; that is no crash.
        if isinstance(output, TextIOWrapper):
            output.reconfigure(errors="replace")
    try:
        app(prog_name="replan")
    except SystemExit as end:
        _leave_at_once_if_work_is_left(end)
        raise


def _leave_at_once_if_work_is_left(end: SystemExit) -> None:
    """End without taking the interpreter down under a thread that is still in foreign code."""
    threads = sys.modules.get("replan.specialists.threads")
    if threads is None or not threads.still_at_work():
        return
    logging.shutdown()
    with suppress(OSError):  # whoever read it may have gone
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(end.code if isinstance(end.code, int) else 0)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"replan {version('replan')}")
        raise typer.Exit


@app.callback()
def root(
    show_version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Plan-driven work with a team of specialists."""


@app.command()
def run(
    context: typer.Context,
    task: Annotated[str, typer.Argument(metavar="TASK|PLAN.md", help="What to do, or a plan.")],
    *,
    team: TeamFileOption = None,
    model: Annotated[
        str | None,
        typer.Option(
            envvar="REPLAN_MODEL",
            help="The host's model: offline, openai:NAME, provider:NAME; else the team file's.",
        ),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(envvar="REPLAN_BASE_URL", help="A server that speaks the OpenAI protocol."),
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option("--dir", exists=True, file_okay=False, help="The folder with your files."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(file_okay=False, help="The folder for reports; else the one of --dir."),
    ] = None,
    plan_out: Annotated[
        Path | None,
        typer.Option(dir_okay=False, help="Write the plan here, with marks and results."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each event as a line of JSON.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the answer alone.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show what specialists and the host say, too.")
    ] = False,
    log_file: Annotated[
        Path | None, typer.Option(dir_okay=False, help="Write a log here, at its end.")
    ] = None,
) -> None:
    """Do a task, or carry out a plan document.

    Exit codes: 0 answered or completed, 1 partial, failed or rejected, 2 wrong use, 3 waiting for
    an answer, 130 interrupted.
    """
    # A checkpoint that somebody tampered with must not run code; LangGraph reads this on import.
    os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
    try:
        from replan.cli.running import Order, carry_out
        from replan.cli.telling import Manner

        order = Order(
            task=task,
            team=team,
            model=_chosen_model(context, model, team),
            base_url=base_url,
            directory=directory,
            out=out,
            plan_out=plan_out,
            log_file=log_file,
            manner=Manner(as_json=as_json, quiet=quiet, verbose=verbose),
        )
        code = carry_out(order, os.environ, sys.stdout, sys.stderr)
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        code = INTERRUPTED
    if code == INTERRUPTED:
        # All is written; who presses it again does not want to wait for what is left behind.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    raise typer.Exit(code)


@app.command()
def check(
    plan: Annotated[Path, typer.Argument(metavar="PLAN.md", help="A plan document.")],
    *,
    team: TeamFileOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Tell the mistakes of a plan; or its steps, width, critical path and worst-case model calls.

    Exit codes: 0 it can run, 2 it has mistakes or names specialists whom the team does not have.
    """

    def checked() -> int:
        from replan.cli.checking import check_plan

        text, code = check_plan(plan, team, os.environ, as_json=as_json)
        typer.echo(text, nl=False)
        return code

    _do(checked)


@app.command()
def graph(
    *,
    team: TeamFileOption = None,
    drawing: Annotated[
        DrawingFormat, typer.Option("--format", help="The form of the drawing.")
    ] = DrawingFormat.MERMAID,
) -> None:
    """Draw the graph of a team."""

    def drawn() -> int:
        from replan.cli.drawing import draw

        typer.echo(draw(team, os.environ, ascii_art=drawing is DrawingFormat.ASCII))
        return 0

    _do(drawn)


@app.command()
def init(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", file_okay=False, help="Where; here, if not given.")
    ] = Path(),
    *,
    force: Annotated[bool, typer.Option("--force", help="Write over what is there.")] = False,
) -> None:
    """Write a starter team: team.yaml, its JSON schema for editors, and a plan to run."""

    def written() -> int:
        from replan.cli.starting import write_starter

        typer.echo(write_starter(directory, force=force), nl=False)
        return 0

    _do(written)


@app.command()
def schema() -> None:
    """Print the JSON schema of team files."""

    def printed() -> int:
        from replan.cli.starting import schema_text

        typer.echo(schema_text(), nl=False)
        return 0

    _do(printed)


def _chosen_model(context: typer.Context, model: str | None, team: Path | None) -> str | None:
    """The host's model: that of the command line, then the team file's, then the environment's."""
    is_set = context.get_parameter_source("model")
    from_shell = is_set is not None and is_set.name == "ENVIRONMENT"
    return None if team is not None and from_shell else model


def _do(command: Callable[[], int]) -> None:
    """Do what a command does; a wrong use is one message and no traceback."""
    from replan.cli.cells import harmless
    from replan.errors import UsageError

    os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
    try:
        code = command()
    except UsageError as error:
        typer.echo(f"replan: {harmless(str(error))}", err=True)
        code = WRONG_USE
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        code = INTERRUPTED
    raise typer.Exit(code)
