"""The `replan` program; nothing heavy is imported before a command needs it."""

import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="replan",
    help="Plan-driven work with a team of specialists.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

_INTERRUPTED = 130


def main() -> None:
    """Start the program; see the exit codes of `replan run --help`."""
    app(prog_name="replan")


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
    task: Annotated[str, typer.Argument(metavar="TASK|PLAN.md", help="What to do, or a plan.")],
    *,
    model: Annotated[
        str,
        typer.Option(
            envvar="REPLAN_MODEL", help="The host's model: offline, openai:NAME, provider:NAME."
        ),
    ] = "offline",
    base_url: Annotated[
        str | None,
        typer.Option(envvar="REPLAN_BASE_URL", help="A server that speaks the OpenAI protocol."),
    ] = None,
    directory: Annotated[
        Path,
        typer.Option("--dir", exists=True, file_okay=False, help="The folder with your tables."),
    ] = Path(),
    out: Annotated[
        Path | None,
        typer.Option(file_okay=False, help="The folder for reports; else the one of --dir."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the answer alone.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each event as a line of JSON.")
    ] = False,
) -> None:
    """Do a task, or carry out a plan document.

    Exit codes: 0 answered or completed, 1 partial or failed, 2 wrong use, 130 interrupted.
    """
    # A checkpoint that somebody tampered with must not run code; LangGraph reads this on import.
    os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
    try:
        from replan.cli.running import Order, carry_out  # noqa: PLC0415 - keeps --help light

        order = Order(
            task=task,
            model=model,
            base_url=base_url,
            directory=directory,
            out=out,
            quiet=quiet,
            as_json=as_json,
        )
        code = carry_out(order, os.environ, sys.stdout, sys.stderr)
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        code = _INTERRUPTED
    raise typer.Exit(code)
