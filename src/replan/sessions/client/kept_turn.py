"""One turn of a session that a client stores: its beginning, and its record."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from pydantic import JsonValue, computed_field

from replan.base.errors import InputError
from replan.base.values import Value
from replan.ports.agent import UserInput
from replan.ports.session_store import (
    AGENT,
    VERSION,
    KeptSession,
    SessionKey,
    SessionStore,
    SessionTurn,
)
from replan.sessions.session_runs import name_from, name_of_turn
from replan.state.session.context import AgentContext, AgentResult, Message, ToolExecution

_TITLE = 200


class UndoneTurn(Value):
    """A turn that was undone.

    Attributes:
        messages: What was said in it.
        effects: The calls of tools in it; what they did outside the session stays.
        note: Both in one sentence, for the user.
    """

    messages: tuple[Message, ...] = ()
    effects: tuple[ToolExecution, ...] = ()

    @computed_field
    @property
    def note(self) -> str:
        """The change of the session, and what remains."""
        names = ", ".join(
            dict.fromkeys(execution.tool_name for execution in self.effects if execution.success)
        )
        stays = f" What its tools did outside stays: {names}." if names else ""
        return f"The newest turn is taken back. What its steps did outside stays.{stays}"


@dataclass(frozen=True, kw_only=True)
class KeptTurn:
    """A turn that is being taken, at a session that does not change meanwhile."""

    key: SessionKey
    turn_id: str
    given: str  # the digest of the input
    title: str
    context: AgentContext  # the session before the turn
    version: int  # of the session
    takes_back: int | None = None  # the turn whose place this one takes
    agent: str = ""  # the name of who takes it; empty where it has none

    @property
    def name(self) -> str:
        """The run of this turn, and its request to a waiting run."""
        return name_of_turn(self.key, self.turn_id)

    async def keep(self, result: AgentResult, store: SessionStore, at: datetime) -> AgentResult:
        """Keep the turn, if it changed anything, and return its result.

        Raises:
            SessionConflictError: The session has another version.
        """
        if not result.context_updates:
            return result
        result = self._with_facts(result)
        turn = SessionTurn(
            turn_id=self.turn_id,
            at=at,
            given=self.given,
            title=self.title and title_in(result.context_updates, self.title),
            stage=stage_after(self.context, result.context_updates),
            run_id=str(result.metadata.get("run_id") or ""),
            updates=result.context_updates,
            result=result.replace(context_updates={}).to_dict(),
            takes_back=self.takes_back,
        )
        await store.append(self.key, turn, self.version)
        return result

    def _with_facts(self, result: AgentResult) -> AgentResult:
        """The result with the fields that only the client knows."""
        facts: dict[str, JsonValue] = {
            "session_id": self.key.session_id,
            "turn_id": self.turn_id,
            VERSION: self.version + 1,
        }
        return result.replace(
            metadata={**result.metadata, **facts},
            context_updates=with_version(result.context_updates, self.version + 1, self.agent),
        )


def with_version(
    updates: Mapping[str, JsonValue], version: int, agent: str = ""
) -> dict[str, JsonValue]:
    """Updates with the version that they make, and its author if known."""
    metadata = cast("dict[str, JsonValue]", updates.get("session_metadata", {}))
    changes: dict[str, JsonValue] = {VERSION: {"set": version}}
    if agent:
        changes[AGENT] = {"set": agent}
    return {**updates, "session_metadata": {**metadata, **changes}}


def check_agent(context: AgentContext, agent: str) -> None:
    """Refuse a session to an agent of another name than that with which it began."""
    began = context.session_metadata.get(AGENT)
    if agent and began and began != agent:
        raise InputError(
            f"The session '{context.session_id}' began with {began}, and this is {agent}. "
            "Continue it with that, or begin another session."
        )


def stage_after(context: AgentContext, updates: Mapping[str, JsonValue]) -> str:
    """The status of a session after updates."""
    order = updates.get("current_stage")
    return str(order.get("set")) if isinstance(order, dict) else context.current_stage


def recorded_result(turn: SessionTurn, input_digest: str) -> AgentResult:
    """The result of a turn that was taken before."""
    if turn.given != input_digest:
        raise InputError(
            f"The turn '{turn.turn_id}' was taken with another input. Give each turn its own id."
        )
    return AgentResult.model_validate(turn.result)


def taken_back(now: KeptSession, before: AgentContext) -> UndoneTurn:
    """What goes with the newest turn."""
    return UndoneTurn(
        messages=_added(now.context.dialogue_history, before.dialogue_history),
        effects=_added(now.context.tool_execution_history, before.tool_execution_history),
    )


def given_digest(user_input: UserInput, *, is_new: bool, is_edit: bool) -> str:
    """The fingerprint of an input."""
    written = json.dumps(user_input, sort_keys=True, default=repr)
    return name_from([written, is_new, is_edit])


def title_of(user_input: UserInput) -> str:
    """What a turn is about: the beginning of its text."""
    blocks = cast("Any", user_input if isinstance(user_input, list | tuple) else ())
    texts = [str(cast("Any", block).get("text", "")) for block in blocks if isinstance(block, dict)]
    text = user_input if isinstance(user_input, str) else " ".join(texts)
    return " ".join(text.split())[:_TITLE]


def title_in(updates: Mapping[str, JsonValue], title: str) -> str:
    """What a turn is about, as its history has it: an agent may keep secrets out of that."""
    change = cast("Any", updates.get("dialogue_history", {}))
    added = change.get("append", ())
    texts = (entry["content"] for entry in added if entry["role"] == "user")
    return title_of(next(texts, title))


def title_of_history(context: AgentContext) -> str:
    """The title of a session, from its user's first message."""
    texts = (message.content for message in context.dialogue_history if message.role == "user")
    return title_of(next(texts, None))


def _added(now: tuple[Any, ...], before: tuple[Any, ...]) -> tuple[Any, ...]:
    return now[len(before) :]
