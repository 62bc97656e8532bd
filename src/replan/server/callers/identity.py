"""A caller: a name, a tenant, and what the caller may do and take."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from replan.base.values import Value
from replan.server.problems import RefusedError

Role = Literal["read", "answer", "run", "operate", "watch"]
"""What a token may do: look; answer and approve; start, stop and resume; everything; and `watch`,
which reads figures of the process and no run."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def _plain(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError("begin with a letter or a digit, and use letters, digits, '_' and '-'")
    return name


PlainName = Annotated[str, AfterValidator(_plain)]
"""A name that can be a label, and a part of the id of a run."""


class Allowance(Value):
    """The limits of the runs of one token; fields that are left out are not bounded.

    Attributes:
        runs_at_once: Runs at work at the same time.
        tokens_a_day: Tokens of models, in and out, from midnight to midnight (UTC).
        money_a_day: Money in the currency of the prices, from midnight to midnight (UTC).
    """

    runs_at_once: int | None = Field(default=None, ge=1)
    tokens_a_day: int | None = Field(default=None, ge=1)
    money_a_day: float | None = Field(default=None, gt=0, allow_inf_nan=False)


class Identity(Value):
    """Who calls.

    Attributes:
        name: The name of the token; it is recorded with what was asked, answered and stopped.
        tenant: Whose runs are seen; empty for the operator of the storage, who sees all.
        user: The person, for facts that a team remembers; else the name.
        roles: What may be done.
        limits: How much of it.
    """

    name: PlainName
    tenant: PlainName | Literal[""] = ""
    user: str = Field(default="", max_length=200)
    roles: frozenset[Role] = frozenset({"operate"})
    limits: Allowance = Allowance()

    @property
    def person(self) -> str:
        """The user, else the name of the token."""
        return self.user or self.name

    @property
    def is_operator(self) -> bool:
        """Whether the caller is bound to no tenant and to no limits."""
        return not self.tenant and self.limits == Allowance()

    def may(self, role: Role) -> bool:
        """Whether something is allowed; every role for runs includes reading."""
        if role == "read":
            return self.roles != frozenset[Role]({"watch"})
        return role in self.roles or "operate" in self.roles


def check_role(who: Identity, role: Role | None) -> None:
    """Refuse what a token does not have the role for; without a role it is open to anybody.

    Raises:
        RefusedError: It does not have it.
    """
    if role is None or who.may(role):
        return
    has = ", ".join(sorted(who.roles))
    raise RefusedError(
        403,
        "not_allowed",
        f"The token '{who.name}' may not do this: it needs the role '{role}', and has {has}. "
        "Use another token, or let the operator of the server add the role.",
    )
