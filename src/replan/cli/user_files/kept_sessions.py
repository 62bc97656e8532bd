"""The sessions of a user in a storage, found by their ids; those of files, and whether to trust."""

import json
from pathlib import Path

from replan.base.errors import ContextError, InputError
from replan.cli.user_files.named import LAST
from replan.cli.user_files.order_signature import user_key
from replan.cli.user_files.storage_location import only_id
from replan.sessions.carried_run import RUN, RunCarrier
from replan.sessions.client.user_sessions import UserSessions
from replan.state.session.context import AgentContext

_MOST = 1_000
_TOLD = 3


async def find_session(client: UserSessions, prefix: str) -> str:
    """The only session whose id has this prefix; `last` is the one that was used last.

    Raises:
        InputError: There is none, or more than one.
    """
    newest = [session.session_id for session in await client.sessions(_MOST)]
    matching = [each for each in newest if prefix and each.startswith(prefix)]
    found = newest[:1] if prefix == LAST else matching
    return only_id("session", prefix, found, newest[:_TOLD])


def read_session(path: Path) -> AgentContext:
    """Read an export.

    Raises:
        InputError: It cannot be read.
        ContextError: It is not a session; names every bad field.
    """
    try:
        return AgentContext.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, ContextError):
            raise
        raise InputError(f"'{path}' cannot be read as a session: {error}.") from error


def sign_waiting_run(context: AgentContext) -> tuple[AgentContext, bool]:
    """Sign the waiting run of a session for this user; also say if it had another signer.

    Raises:
        ContextError: The run cannot be used.
    """
    key = user_key()
    carrier = RunCarrier(key=key)
    try:
        run = carrier.carried(context)
    except ContextError:
        run = RunCarrier().carried(_unsigned(context))
    else:
        return context, False
    if run is None or key is None:
        return context, False
    signed = {**context.project_state, RUN: carrier.written(run, context.session_id)}
    return context.replace(project_state=signed), True


def _unsigned(context: AgentContext) -> AgentContext:
    """A context without the signature of another user at its waiting run."""
    written = context.project_state.get(RUN)
    if not isinstance(written, dict):
        return context
    plain = {name: value for name, value in written.items() if name != "signature"}
    return context.replace(project_state={**context.project_state, RUN: plain})
