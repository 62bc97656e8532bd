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
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from replan.cli.exits import INCOMPLETE, INTERRUPTED, TERMINATED, WRONG_USE

if TYPE_CHECKING:
    from replan.cli.keeping import Place
    from replan.cli.session import Site

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


StorageOption = Annotated[
    str | None,
    typer.Option(
        "--storage",
        metavar="WHERE",
        help="Where runs are kept: a SQLite file, postgresql://..., or memory (not kept); "
        "else REPLAN_STORAGE, else a file in your data folder.",
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        envvar="REPLAN_MODEL",
        help="The host's model: offline, openai:NAME, provider:NAME; else the team file's.",
    ),
]
BaseUrlOption = Annotated[
    str | None,
    typer.Option(envvar="REPLAN_BASE_URL", help="A server that speaks the OpenAI protocol."),
]
DirectoryOption = Annotated[
    Path | None,
    typer.Option("--dir", exists=True, file_okay=False, help="The folder with your files."),
]
OutOption = Annotated[
    Path | None,
    typer.Option(file_okay=False, help="The folder for reports; else the one of --dir."),
]
PlanOutOption = Annotated[
    Path | None,
    typer.Option(dir_okay=False, help="Write the plan here, with marks and results."),
]
LimitOption = Annotated[
    list[str] | None,
    typer.Option("--limit", metavar="NAME=VALUE", help="A limit, such as max_model_calls=50."),
]
GraceOption = Annotated[
    float, typer.Option("--grace", min=0.0, help="Seconds that running steps get at Ctrl-C.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
JsonLinesOption = Annotated[
    bool, typer.Option("--json", help="Print each event as a line of JSON.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Print the answer alone.")]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", help="Show what specialists and the host say, too.")
]
LogFileOption = Annotated[
    Path | None, typer.Option(dir_okay=False, help="Write a log here, at its end.")
]
RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="A run's id or its beginning, or `last`.")
]


class Approve(StrEnum):
    """Which plans wait for a person's word."""

    NEVER = "never"
    PLAN = "plan"
    REVISIONS = "revisions"
    ALWAYS = "always"


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
        if end.code:
            _drop_what_cannot_be_written()
        _leave_at_once_if_work_is_left(end)
        raise


def _drop_what_cannot_be_written() -> None:
    """Keep Python from trying again at its end: that would change the exit code."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _leave_at_once_if_work_is_left(end: SystemExit) -> None:
    """End without taking the interpreter down under work that is still in foreign code."""
    own_loop = sys.modules.get("replan.own_loop")
    if own_loop is None or not own_loop.is_work_left():
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


class RunCommand(TyperCommand):
    """`replan run`, whose `--approve` may stand without a value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; a word that names no kind of approval is not the option's value."""
        kinds = {each.value for each in Approve}
        following = [*args, ""][1:]
        args = [
            f"{arg}=plan" if arg == "--approve" and after not in kinds else arg
            for arg, after in zip(args, following, strict=True)
        ]
        return super().parse_args(ctx, args)


@app.command(cls=RunCommand)
def run(
    context: typer.Context,
    task: Annotated[str, typer.Argument(metavar="TASK|PLAN.md", help="What to do, or a plan.")],
    *,
    team: TeamFileOption = None,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    directory: DirectoryOption = None,
    out: OutOption = None,
    plan_out: PlanOutOption = None,
    approve: Annotated[
        Approve | None,
        typer.Option(help="Which plans wait for your word; --approve alone means plan."),
    ] = None,
    preview: Annotated[
        bool, typer.Option("--preview", help="Print what it takes at worst, and do nothing.")
    ] = False,
    limit: LimitOption = None,
    grace: GraceOption = 10.0,
    storage: StorageOption = None,
    as_json: JsonLinesOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    log_file: LogFileOption = None,
) -> None:
    """Do a task, or carry out a plan document.

    Exit codes: 0 answered or completed, 1 partial, failed or rejected, 2 wrong use, 3 waiting for
    an answer, 130 interrupted, 143 terminated.
    """
    chosen = _chosen_model(context, model, team)

    def ran() -> int:
        from replan.cli.orders import order_of, settings_of_run
        from replan.cli.running import carry_out

        order = order_of(
            task,
            team=team,
            model=chosen,
            base_url=base_url,
            directory=directory,
            out=out,
            plan_out=plan_out,
            settings=settings_of_run(limit or [], approve),
        )
        if preview:
            from replan.cli.previewing import previewed

            text, code = previewed(order, os.environ, as_json=as_json)
            typer.echo(text, nl=False)
            return code
        return carry_out(order, _site(storage, grace, as_json, quiet, verbose, log_file))

    _do(ran)


@app.command()
def resume(
    run_id: RunArgument,
    *,
    answer: Annotated[
        list[str] | None,
        typer.Option(
            "--answer",
            metavar="[KEY=]TEXT",
            help="The answer to what the run asks; of several questions, with the question's key.",
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(dir_okay=False, exists=True, help="The plan, changed, that waits for you."),
    ] = None,
    limit: LimitOption = None,
    team: TeamFileOption = None,
    model: Annotated[str | None, typer.Option(help="Another model for the host.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Another server for models.")] = None,
    directory: DirectoryOption = None,
    out: OutOption = None,
    plan_out: PlanOutOption = None,
    grace: GraceOption = 10.0,
    storage: StorageOption = None,
    as_json: JsonLinesOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    log_file: LogFileOption = None,
) -> None:
    """Go on with a run that was stopped, killed, waits for an answer or was ended by a limit.

    What is finished stays finished. Exit codes are those of `replan run`.
    """

    def resumed() -> int:
        from replan.cli.orders import limits_of
        from replan.cli.resuming import Wish, carry_on

        others = {
            "team": team,
            "model": model,
            "base_url": base_url,
            "directory": directory,
            "out": out,
            "plan_out": plan_out,
        }
        wish = Wish(
            run=run_id,
            answers=answer or [],
            plan=plan,
            limits=limits_of(limit or []),
            changes={name: value for name, value in others.items() if value is not None},
        )
        return carry_on(wish, _site(storage, grace, as_json, quiet, verbose, log_file))

    _do(resumed)


@app.command()
def runs(
    *,
    most: Annotated[int, typer.Option("--most", min=1, help="How many, the newest first.")] = 20,
    storage: StorageOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each.")] = False,
) -> None:
    """List the runs that are kept, the newest first."""

    def listed() -> int:
        from replan.cli.listing import list_runs

        return list_runs(most, _place(storage), sys.stdout, as_json=as_json)

    _do(listed)


@app.command()
def show(
    run_id: RunArgument,
    *,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a run: its plan with marks, who changed it, tries, events, what it used, its answer."""

    def shown() -> int:
        from replan.cli.showing import show_run

        return show_run(run_id, _place(storage), sys.stdout, as_json=as_json)

    _do(shown)


@app.command()
def stop(run_id: RunArgument, *, storage: StorageOption = None) -> None:
    """Stop a run, whichever process works on it: what runs may end, and the run can go on later."""

    def stopped() -> int:
        from replan.cli.stop import stop_run

        return stop_run(run_id, _place(storage), sys.stdout)

    _do(stopped)


@app.command()
def rm(
    run_ids: Annotated[list[str], typer.Argument(metavar="RUN...", help="Ids of runs.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    storage: StorageOption = None,
) -> None:
    """Remove runs with all that is kept of them. A run that is not over cannot go on then."""

    def removed() -> int:
        from replan.cli.removing import remove_runs

        return remove_runs(run_ids, _place(storage), yes=yes)

    _do(removed)


@app.command()
def check(
    plan: Annotated[Path, typer.Argument(metavar="PLAN.md", help="A plan document.")],
    *,
    team: Annotated[
        Path | None,
        typer.Option(
            "--team", dir_okay=False, exists=True, help="A team file, whose names and limits count."
        ),
    ] = None,
    imports: Annotated[
        bool,
        typer.Option(
            "--import", help="Import what the team file names, as a run does: its code runs."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Tell the mistakes of a plan; or its steps, width, critical path and worst-case model calls.

    Exit codes: 0 it can run, 2 it has mistakes or names specialists whom the team does not have.
    """

    def checked() -> int:
        from replan.cli.checking import check_plan

        text, code = check_plan(plan, team, os.environ, as_json=as_json, imports=imports)
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


def _place(storage: str | None) -> "Place":
    from replan.cli.keeping import place_of

    return place_of(storage, os.environ)


def _site(
    storage: str | None,
    grace: float,
    as_json: bool,
    quiet: bool,
    verbose: bool,
    log_file: Path | None,
) -> "Site":
    from replan.cli.session import Site
    from replan.cli.telling import Manner

    return Site(
        environment=os.environ,
        input=sys.stdin,
        output=sys.stdout,
        errors=sys.stderr,
        place=_place(storage),
        manner=Manner(as_json=as_json, quiet=quiet, verbose=verbose),
        log_file=log_file,
        grace=grace,
    )


def _do(command: Callable[[], int]) -> None:
    """Do what a command does; a wrong use is one message and no traceback."""
    # A checkpoint that somebody tampered with must not run code; LangGraph reads this on import.
    os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
    from replan.cli.cells import harmless
    from replan.cli.logs import off_the_screen
    from replan.errors import ReplanError, UsageError
    from replan.secrets.sources import learn_environment

    learn_environment(os.environ)
    try:
        with off_the_screen():
            code = command()
    except ReplanError as error:
        typer.echo(f"replan: {harmless(str(error))}", err=True)
        code = WRONG_USE if isinstance(error, UsageError) else INCOMPLETE
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        code = INTERRUPTED
    if code in (INTERRUPTED, TERMINATED):
        # All is written; who presses it again does not want to wait for what is left behind.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    raise typer.Exit(code)
