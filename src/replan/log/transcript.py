"""The record of a tool loop: the model's replies before its tools run, and the calls' outcomes.

A loop that is run again continues from its record: what the model said is not asked again, and what
a tool did is not done again. All of it is in the log, under the key of the step.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Literal, cast

from langchain_core.messages import ToolMessage
from pydantic import JsonValue

from replan.base.declared.part import Effects
from replan.base.values import Value, digest_of, restored
from replan.log.run_log import RunLog

REPLY = "reply/"  # the prefix of notes that hold the replies of a model; the loop's key follows
CALL = "call/"  # the prefix of notes about tool calls; the loop's key follows

BEGUN, ENDED = "/begun", "/ended"  # the end of the key of a note about a call


class ToolRun(Value):
    """A tool's call that has begun, on record before the tool is called."""

    tool: str
    arguments: dict[str, JsonValue]
    effects: Effects  # what it would do if it were called again
    attempt: int  # the attempt of the step that calls it


class ToolEnd(Value):
    """The outcome of a tool's call: all that the model sees of it."""

    messages: tuple[ToolMessage, ...]
    is_command: bool = False  # whether the tool gave the messages as a command of LangGraph


# A loop finds its transcript in the context (`ports/run_context.py`).
class Transcript:
    """The record of the tool loop of one step at one specialist, or of the host's answer."""

    def __init__(
        self, log: RunLog, run_id: str, key: str, on_doubt: Literal["ask", "fail", "tell"]
    ) -> None:
        self.key = key  # the idempotency key of the work that the loop does
        # What happens to an unsafe call that was cut off: a person is asked, the step fails, or the
        # model is told.
        self.on_doubt: Literal["ask", "fail", "tell"] = on_doubt
        self.attempt = 1
        self._log = log
        self._run_id = run_id
        self._notes: dict[str, JsonValue] | None = None
        self._loading = asyncio.Lock()

    async def reply(self, number: int) -> JsonValue:
        """The n-th reply of the model, or `None` if it is not on record."""
        return (await self._load()).get(f"{self._replies}{number}")

    async def note_reply(self, number: int, message: JsonValue) -> None:
        await self._note(f"{self._replies}{number}", message)

    async def newest_reply(self) -> tuple[int, JsonValue]:
        """The reply that came last, with its number; 0 and `None` if none is on record."""
        replies = [key for key in await self._load() if key.startswith(self._replies)]
        number = max((int(reply.removeprefix(self._replies)) for reply in replies), default=0)
        return number, await self.reply(number)

    async def replace_reply(self, number: int, message: JsonValue) -> None:
        """Record a reply in place of the one before it."""
        await self.note_reply(number, message)
        await self._strike(f"{self._replies}{number - 1}")

    async def outcome(self, call_number: str) -> JsonValue:
        """The outcome of a call; None if it is not on record."""
        return (await self._load()).get(f"{self._calls}{call_number}{ENDED}")

    async def begun(self, call_number: str) -> ToolRun | None:
        """The call that has begun at a place and may have ended in silence; None if none has."""
        noted = (await self._load()).get(f"{self._calls}{call_number}{BEGUN}")
        return None if noted is None else restored(ToolRun, noted)

    async def begin(self, call_number: str, run: ToolRun) -> None:
        """Record a call before the tool is called; it takes the place of one in doubt."""
        if await self.begun(call_number) is not None:
            await self.forget(call_number)
        await self._note(f"{self._calls}{call_number}{BEGUN}", run.model_dump(mode="json"))

    async def end(self, call_number: str, outcome: JsonValue, *, has_acted: bool = True) -> None:
        """Record the outcome of a call before the model receives it."""
        await self._note(f"{self._calls}{call_number}{ENDED}", outcome)
        if not has_acted:
            await self._strike(f"{self._calls}{call_number}{BEGUN}")

    async def forget(self, call_number: str) -> None:
        """Remove a call that waits for a person: it will be made again."""
        await self._strike(f"{self._calls}{call_number}/")

    def key_of(self, call_number: str, tool: str, arguments: Mapping[str, JsonValue]) -> str:
        """The idempotency key of a call, which is the same when this call is made again."""
        return digest_of(self.key, call_number, tool, arguments)

    async def restart(self) -> None:
        """Let the next attempt begin again, unless a tool has begun what must not be done again."""
        if self._effects_begun() <= {"pure"}:
            await self.close()

    async def reread(self) -> None:
        """Take over what another process has put on record."""
        self._notes = None
        await self._load()

    async def calls_in_doubt(self) -> tuple[ToolRun, ...]:
        """The calls of unsafe tools that have begun, and of which no end is on record."""
        notes = await self._load()
        begun = [key.removesuffix(BEGUN) for key in notes if key.endswith(BEGUN)]
        runs = [
            restored(ToolRun, notes[f"{call}{BEGUN}"])
            for call in begun
            if f"{call}{ENDED}" not in notes
        ]
        return tuple(run for run in runs if run.effects == "unsafe")

    @property
    def has_acted(self) -> bool:
        """Whether a tool was called that must not be called twice."""
        return "unsafe" in self._effects_begun()

    def _effects_begun(self) -> set[Effects]:
        begun = [note for key, note in (self._notes or {}).items() if key.endswith(BEGUN)]
        return {restored(ToolRun, note).effects for note in begun}

    async def close(self) -> None:
        """Delete the whole record, once the outcome of the loop is on record itself."""
        if self._notes:
            await self._strike(self._replies)
            await self._strike(self._calls)

    @property
    def _replies(self) -> str:
        return f"{REPLY}{self.key}/"

    @property
    def _calls(self) -> str:
        return f"{CALL}{self.key}/"

    async def _load(self) -> dict[str, JsonValue]:
        async with self._loading:
            if self._notes is None:
                replies = await self._log.notes(self._run_id, self._replies)
                calls = await self._log.notes(self._run_id, self._calls)
                self._notes = {**replies, **calls}
        return self._notes

    async def _note(self, key: str, value: JsonValue) -> None:
        notes = await self._load()
        notes[key] = await self._log.note(self._run_id, key, value)

    async def _strike(self, prefix: str) -> None:
        await self._log.strike(self._run_id, prefix)
        kept = {k: v for k, v in (self._notes or {}).items() if not k.startswith(prefix)}
        self._notes = kept


def plain(value: object) -> dict[str, JsonValue]:
    """Take arguments as plain data, whatever a person or a model put into them."""
    return cast("dict[str, JsonValue]", json.loads(json.dumps(value, default=str)))
