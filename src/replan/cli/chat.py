"""`replan chat`: a conversation at the terminal, in a stored session."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

import shlex
from pathlib import Path
from typing import Annotated

import typer

from replan.cli.run import chosen_model
from replan.cli.shared import options
from replan.cli.shared.process import as_command
from replan.cli.shared.site import Site, site_of


@as_command
@options.with_options("site", site_of, "grace", "as_json")
def chat(
    context: typer.Context,
    *,
    session: Annotated[
        str | None,
        typer.Option(
            "--session",
            "-s",
            metavar="ID|last",
            help="The session to continue: its id or a prefix of it, or `last`; else a new one.",
        ),
    ] = None,
    team: options.TeamFile = None,
    job: Annotated[
        Path | None,
        typer.Option("--job", metavar="JOB.yaml", help="Talk about a job instead of with a team."),
    ] = None,
    pipeline: Annotated[
        str | None,
        typer.Option(
            "--pipeline",
            metavar="MODULE:CLASS",
            help="Talk with a pipeline instead of a team; its module is in --dir.",
        ),
    ] = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    directory: options.Directory = None,
    out: options.Out = None,
    approve: options.Approve = None,
    limit: options.Limit = None,
    user: options.User = None,
    site: Site,
) -> int:
    """Chat with a team, a pipeline or a job: each line is a message; /help lists commands.

    Without a terminal, it reads lines and writes lines. Exit codes: 0 left, 1 the last message got
    no answer (without a terminal), 2 wrong use, 3 something waits for an answer, 130 interrupted.
    """
    chosen = chosen_model(context, model, team)
    repeated = {
        "--team": team,
        "--job": job,
        "--pipeline": pipeline,
        "--model": chosen,
        "--base-url": base_url,
        "--dir": directory,
        "--out": out,
        "--approve": approve,
        "--user": user,
    }

    from replan.base.errors import InputError
    from replan.cli.shared.carry_out import exit_code_of
    from replan.cli.talk.opening import open_conversation
    from replan.cli.talk.talking import converse
    from replan.cli.user_files.order_signature import user_name
    from replan.cli.user_files.orders import Order, read_settings

    if sum(source is not None for source in (team, job, pipeline)) > 1:
        raise InputError(
            "A conversation has one of --team, --job and --pipeline. Give only one of them."
        )
    order = Order(
        task="",
        team=team,
        model=chosen,
        base_url=base_url,
        directory=directory,
        out=out,
        settings=read_settings(limit or [], approve),
    )
    again = _repeated(repeated) + site.location.option

    def resume(session_id: str) -> str:
        return f"replan chat --session {session_id}{again}" if site.location.outlives else ""

    whose = user_name() if user is None else user
    opens = open_conversation(order, whose, site, job=job, pipeline=pipeline)
    return exit_code_of(lambda: converse(opens, order, session, site, resume), site)


def _repeated(options: dict[str, str | Path | None]) -> str:
    """The options that a command line repeats, to continue with the same team."""
    set_options = {name: str(value) for name, value in options.items() if value is not None}
    return "".join(f" {name} {shlex.quote(value)}" for name, value in set_options.items())
