"""`replan sessions`: the sessions of a user: list, show, export, import and remove them."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from __future__ import annotations

import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from replan.base.errors import InputError, SessionConflictError
from replan.cli.shared import options
from replan.cli.shared.process import as_command, confirm, confirm_loss, location_from
from replan.views.cells import columns, counted, minute, one_line, width_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from replan.ports.session_store import SessionRecord
    from replan.sessions.client.user_sessions import UserSessions
    from replan.state.session.context import AgentContext

_NONE = "No sessions are stored here. `replan chat` begins one.\n"
_PAGE = 50
_LONGEST_ID = 200

SessionArgument = Annotated[
    str,
    typer.Argument(metavar="SESSION", help="The id of a session or a prefix of it, or `last`."),
]
sessions = typer.Typer(
    help="List, show, export, import and remove the sessions of `replan chat`.",
    no_args_is_help=True,
)


@sessions.command("list")
@as_command
async def list_(
    *,
    most: options.Most = 20,
    user: options.User = None,
    storage: options.Storage = None,
    as_json: options.JsonRows = False,
) -> None:
    """List the sessions, the most recently used first."""
    async with _client(user, storage) as client:
        found = await client.sessions(most)
        if as_json:
            sys.stdout.write("".join(f"{session.model_dump_json()}\n" for session in found))
        elif found:
            rows = [("session", "used", "stage", "turns", "title"), *map(_cells, found)]
            lines = columns(rows, width_of(sys.stdout), widest=_LONGEST_ID)
            sys.stdout.write("".join(f"{line}\n" for line in lines))
        else:
            sys.stdout.write(_NONE)


@sessions.command()
@as_command
async def show(
    session: SessionArgument,
    *,
    most: options.Most = _PAGE,
    user: options.User = None,
    storage: options.Storage = None,
) -> None:
    """Show the messages of a session, and its status."""
    async with _client(user, storage) as client:
        from replan.cli.user_files.kept_sessions import find_session
        from replan.views.rendered import console_on, print_markdown
        from replan.views.session_messages import messages_text

        session_id = await find_session(client, session)
        page = await client.history(session_id, limit=most)
        context = await client.export(session_id)
        left = len(context.dialogue_history) - len(page.messages)
        text = messages_text(page.messages)
        if left:
            text = f"({counted(left, 'message')} before these; --limit shows more)\n\n{text}"
        if sys.stdout.isatty():
            print_markdown(console_on(sys.stdout), text)
        else:
            sys.stdout.write(f"{text}\n")
        sys.stdout.write(f"\nsession {one_line(session_id)}: {context.current_stage}\n")


@sessions.command()
@as_command
async def export(
    session: SessionArgument,
    *,
    output: Annotated[
        Path | None,
        options.output_option("The new file to write; without it, the session goes to a pipe."),
    ] = None,
    user: options.User = None,
    storage: options.Storage = None,
) -> None:
    """Write a session as JSON, which `replan sessions import` and `AgentContext` read."""
    async with _client(user, storage) as client:
        from replan.cli.user_files.kept_sessions import find_session
        from replan.cli.user_files.new_file import check_output, write_out

        check_output(output)
        context = await client.export(await find_session(client, session))
        text = json.dumps(context.to_dict(), ensure_ascii=False, indent=1) + "\n"
        write_out(output, text)


@sessions.command("import")
@as_command
async def import_(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="The file of an export."),
    ],
    *,
    yes: options.Yes = False,
    user: options.User = None,
    storage: options.Storage = None,
) -> None:
    """Import a session that was exported here or elsewhere."""
    async with _client(user, storage) as client:
        from replan.cli.user_files.kept_sessions import read_session, sign_waiting_run

        context, is_foreign = sign_waiting_run(read_session(file))
        if is_foreign and not yes and not _confirm_import(context):
            typer.echo("Nothing was imported.")
            return
        try:
            version = await client.adopt(context)
        except SessionConflictError as error:
            raise InputError(
                f"The session '{context.session_id}' exists here, and is not older: version "
                f"{error.found} here, version {error.expected} in the file. To replace it, "
                "remove it first: replan sessions rm."
            ) from error
        typer.echo(f"session {one_line(context.session_id)} is here, version {version}")


@sessions.command()
@as_command
async def rm(
    ids: Annotated[
        list[str], typer.Argument(metavar="SESSION...", help="The ids of the sessions.")
    ],
    *,
    yes: options.Yes = False,
    user: options.User = None,
    storage: options.Storage = None,
) -> None:
    """Remove sessions with their turns, runs, events and texts."""
    async with _client(user, storage) as client:
        from replan.cli.user_files.kept_sessions import find_session

        # All are found before the first is removed.
        found = [*dict.fromkeys([await find_session(client, id_) for id_ in ids])]
        if not yes and not confirm_loss("session", [*map(one_line, found)]):
            typer.echo("Nothing was removed.")
            return
        for session_id in found:
            await client.delete(session_id)
            typer.echo(f"removed {one_line(session_id)}")


@asynccontextmanager
async def _client(user: str | None, storage: str | None) -> AsyncGenerator[UserSessions]:
    """Open the sessions of a user."""
    from replan.cli.user_files.order_signature import user_name
    from replan.cli.user_files.storage_location import open_existing_location
    from replan.sessions.client.user_sessions import UserSessions

    async with open_existing_location(location_from(storage)) as kept:
        yield UserSessions(kept, user=user_name() if user is None else user)


def _cells(session: SessionRecord) -> tuple[str, ...]:
    used, title = minute(session.updated_at), one_line(session.title)
    return one_line(session.session_id), used, session.stage, str(session.version), title


def _confirm_import(context: AgentContext) -> bool:
    text = (
        f"A run waits in session {one_line(context.session_id)} that another user or machine "
        "began, or that was changed since. The file decides what this run may do."
    )
    return confirm("Import it?", [text], f"{text} Confirm with --yes that you trust the file.")
