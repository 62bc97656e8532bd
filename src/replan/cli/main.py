"""The `replan` program: its commands, each in a file of its name."""

import sys
from importlib.metadata import version
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from replan.cli.chat import chat
from replan.cli.check import check
from replan.cli.completion import completion
from replan.cli.diff import diff
from replan.cli.doctor import doctor
from replan.cli.edit import edit
from replan.cli.export import export
from replan.cli.graph import graph
from replan.cli.init import init
from replan.cli.memory import memory
from replan.cli.message import message
from replan.cli.new import new
from replan.cli.resume import resume
from replan.cli.retry import retry
from replan.cli.rm import rm
from replan.cli.run import RunCommand, run
from replan.cli.runs import runs
from replan.cli.schema import schema
from replan.cli.serve import serve
from replan.cli.sessions import sessions
from replan.cli.shared.process import end_process
from replan.cli.shared.wrong_use import explain
from replan.cli.show import show
from replan.cli.skip import skip
from replan.cli.stats import stats
from replan.cli.stop import stop
from replan.cli.team import team
from replan.cli.ui import ui
from replan.cli.worker import worker

_MEANT = {
    **dict.fromkeys(("answer", "approve", "reject", "reply"), "resume RUN --answer KEY=TEXT"),
    **dict.fromkeys(("continue", "restart"), "resume RUN"),
    **dict.fromkeys(("status", "list", "ls", "ps", "history"), "runs"),
    **dict.fromkeys(("logs", "log", "events", "trace"), "show RUN --attempts"),
    **dict.fromkeys(("compare",), "diff RUN_A RUN_B"),
    **dict.fromkeys(("cancel", "kill", "abort"), "stop RUN"),
    **dict.fromkeys(("delete", "remove"), "rm RUN"),
    **dict.fromkeys(("start", "exec", "plan"), 'run "TASK"'),
    **dict.fromkeys(("server", "api"), "serve TEAM.yaml"),
    **dict.fromkeys(("web", "studio", "open", "dashboard"), "ui"),
    **dict.fromkeys(("validate", "lint"), "check FILE"),
}
"""What people type who know other programs, and what does it here."""


class Program(TyperGroup):
    """The commands; a word of other programs is answered with the command that is meant."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that is called."""
        if args and (meant := _MEANT.get(args[0])):
            ctx.fail(f"No such command '{args[0]}'. This does it: replan {meant}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Call a command; what its parser refuses says what to type."""
        try:
            return super().invoke(ctx)
        except TyperException as error:
            explain(error)
            raise


app = typer.Typer(
    name="replan",
    cls=Program,
    help="Plan-driven work with a team of specialists.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(cls=RunCommand)(run)
app.command(cls=RunCommand)(chat)
_runs = (resume, retry, skip, edit, message, stop, runs, stats, show, diff, export, rm)
for _command in (*_runs, serve, worker, ui, check, doctor, graph, init, schema, completion):
    app.command()(_command)
app.add_typer(memory, name="memory")
app.add_typer(new, name="new")
app.add_typer(sessions, name="sessions")
app.add_typer(team, name="team")


def main() -> None:
    """Start the program; see the exit codes of `replan run --help`."""
    for output in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows a question mark; that is not a crash.
        if isinstance(output, TextIOWrapper):
            output.reconfigure(errors="replace")
    try:
        app(prog_name="replan")
    except SystemExit as end:
        end_process(end.code if isinstance(end.code, int) else int(bool(end.code)))
        raise


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"replan {version('replan')}")
        raise typer.Exit


@app.callback()
def root(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", callback=_print_version, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    """Plan-driven work with a team of specialists."""
