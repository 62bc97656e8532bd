"""The sessions of a user in a storage, found by the beginning of their ids."""

from replan.cli.kept.named import LAST
from replan.errors import InputError
from replan.sessions.client import ClientAgentAdapter

_MOST = 1_000
_TOLD = 3


async def found_session(client: ClientAgentAdapter, prefix: str) -> str:
    """The one session whose id begins so; `last` is the one that was used last.

    Raises:
        InputError: There is none, or more than one.
    """
    newest = [each.session_id for each in await client.sessions(_MOST)]
    found = newest[:1] if prefix == LAST else [each for each in newest if each == prefix]
    found = found or [each for each in newest if prefix and each.startswith(prefix)]
    match found:
        case [one]:
            return one
        case []:
            told = ", ".join(newest[:_TOLD])
            there = f"The newest: {told}; `replan sessions list` lists all." if told else ""
            raise InputError(f"There is no session '{prefix}' here. {there or 'None is kept.'}")
        case several:
            ids = ", ".join(several[:_TOLD])
            raise InputError(f"More than one session begins with '{prefix}': {ids}.")
