"""The facts of a user in a LangGraph store: stored, found by words, forgotten."""

import asyncio
import hashlib
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from langgraph.store.base import BaseStore, Item

from replan.base.errors import ConfigurationError, FactError
from replan.base.secrets.masking import without_secrets
from replan.base.texts.ranking import rank
from replan.base.texts.storable import unstorable
from replan.base.values import Value, restored

LONGEST_FACT = 2_000
"""Characters of a fact."""

MOST_FACTS = 10_000
"""Facts of one user."""

RECALLED = 8
"""The most facts that one search returns."""

_PAGE = 1_000
_LONGEST_ID = 100


_PLAIN = re.compile(r"[a-z][a-z0-9-]{0,99}")


@dataclass(frozen=True)
class FactOwner:
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


class Fact(Value):
    """Something that a team was told or found out, and remembers for later conversations.

    Attributes:
        id: Names it among the facts of its user.
        text: What is remembered.
        at: When it was remembered.
        run_id: The run that remembered it.
        step_id: The step that remembered it; None for the host.
        specialist: Who did the step; empty for the host.
    """

    id: str
    text: str
    at: datetime
    run_id: str = ""
    step_id: int | None = None
    specialist: str = ""


@dataclass(frozen=True)
class Facts:
    """The facts of a user in a store."""

    store: BaseStore
    owner: FactOwner

    async def remember(self, fact: Fact) -> Fact:
        """Keep a fact; return the one that is kept already if it says the very same.

        Raises:
            FactError: It cannot be kept.
        """
        _check(fact.text)
        facts = await self.all()
        same = next((kept for kept in facts if kept.text == fact.text), None)
        if same is not None:
            return same
        if len(facts) >= MOST_FACTS and all(kept.id != fact.id for kept in facts):
            raise FactError(f"{MOST_FACTS:,} facts are kept of this user. Forget some first.")
        value = fact.model_dump(mode="json", exclude={"id"})
        await self.store.aput(self.owner.namespace, fact.id, value, index=["text"])
        return fact

    async def recall(self, query: str, most: int = RECALLED) -> tuple[list[Fact], bool]:
        """The facts that fit a query best, or else the newest ones, and whether they fit."""
        facts = await self.all()
        oldest_first = facts[::-1]
        texts = [fact.text for fact in oldest_first]
        best = await asyncio.to_thread(rank, query[:LONGEST_FACT], texts)
        matching = [oldest_first[place] for place, _ in best[:most]]
        return (matching, True) if matching else (facts[:most], False)

    async def all(self) -> list[Fact]:
        """Every fact, the newest first."""
        facts: dict[str, Fact] = {}
        for offset in range(0, MOST_FACTS, _PAGE):
            page = await self.store.asearch(self.owner.namespace, limit=_PAGE, offset=offset)
            facts |= {item.key: _fact(item) for item in self._in_namespace(page)}
            if len(page) < _PAGE:
                break
        return sorted(facts.values(), key=lambda fact: (fact.at, fact.id), reverse=True)

    async def forget(self, id_: str) -> Fact | None:
        """Take a fact away, and return it; None where there is none of this id."""
        if not 0 < len(id_) <= _LONGEST_ID or unstorable(id_):
            return None
        item = await self.store.aget(self.owner.namespace, id_)
        if item is None:
            return None
        await self.store.adelete(self.owner.namespace, id_)
        return _fact(item)

    def _in_namespace(self, page: list[Any]) -> list[Any]:
        # A store may give what lies below a namespace, too.
        return [item for item in page if tuple(item.namespace) == self.owner.namespace]


def facts_of(store: BaseStore | None, user: str, tenant: str = "") -> Facts:
    """The facts of a user.

    Raises:
        ConfigurationError: No user is named, or there is no store.
    """
    if store is None:
        problem = "there is no store for facts"
        raise ConfigurationError("store", "none", problem, "Give a storage from open_storage.")
    return Facts(store, FactOwner(user, tenant))


def _check(text: str) -> None:
    if not text.strip():
        raise FactError("There is nothing to remember: give a text.")
    if len(text) > LONGEST_FACT:
        size_problem = f"This has {len(text):,} characters; a fact has at most {LONGEST_FACT:,}."
        raise FactError(f"{size_problem} Say it in fewer words, or in several facts.")
    if problem := unstorable(text):
        raise FactError(f"This cannot be kept. {problem}")
    if without_secrets(text) != text:
        problem = "This holds what looks like a secret, and secrets are not remembered."
        raise FactError(f"{problem} Say it without the secret.")


def _fact(item: Item) -> Fact:
    return restored(Fact, {**item.value, "id": item.key})
