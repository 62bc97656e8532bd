"""Whose facts are meant: a tenant and a user, as a namespace of a LangGraph store."""

import hashlib
import re
from dataclasses import dataclass

from replan.errors import ConfigurationError

_PLAIN = re.compile(r"[a-z][a-z0-9-]{0,99}")


@dataclass(frozen=True)
class Whose:
    """A user of a tenant. No model names them.

    Raises:
        ConfigurationError: No user is named.
    """

    user: str
    tenant: str = ""

    def __post_init__(self) -> None:
        if not self.user:
            fix = "Name one: RunSettings(user=...), at the terminal --user NAME."
            raise ConfigurationError("user", self.user, "facts belong to a user", fix)

    @property
    def namespace(self) -> tuple[str, ...]:
        """Where the facts are."""
        # Stores find a namespace by the beginning of its text, some of them with wildcards and
        # without regard to case. The last label ends it, so that "eva" does not find "evan".
        return ("replan", _label(self.tenant), _label(self.user), "facts")


def _label(name: str) -> str:
    """Write a name as a label; two names never have the same one."""
    if _PLAIN.fullmatch(name):
        return name
    # No plain name begins with a digit.
    return "0" + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
