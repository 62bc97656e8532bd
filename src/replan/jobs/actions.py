"""What a command does, as the engine sees it: a call with checked parameters, and its outcome."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast
from urllib.parse import quote

from pydantic import JsonValue

from replan.base.declared.part import Effects
from replan.base.values import Value
from replan.jobs.job import Job
from replan.jobs.spec.action_spec import ActionSpec
from replan.jobs.spec.job_spec import JobCommand, JobSpec
from replan.jobs.spec.spec_rules import PLACEHOLDER

ITEM = "item"
"""The placeholder for the number of the item."""


@dataclass(frozen=True, kw_only=True)
class ActionCall:
    """A call of an action.

    Attributes:
        spec: The spec.
        action: The type of action.
        parameters: Its parameters, with the values of the slots.
        key: The idempotency key.
        effects: What a repetition changes outside.
        job: The job as it is.
    """

    spec: JobSpec
    action: ActionSpec
    parameters: Mapping[str, JsonValue]
    key: str
    effects: Effects
    job: Job

    @property
    def unsafe(self) -> bool:
        """Whether a repetition would have its effect again."""
        return self.effects == "unsafe"

    @property
    def what(self) -> str:
        """What is called, without a value of a slot: it may be secret."""
        command = self.spec.command(self.job.command)
        asked = (command and command.parameters) or {}
        method, endpoint = asked.get("method"), asked.get("endpoint")
        if isinstance(method, str) and isinstance(endpoint, str):
            return f"{method} {endpoint}"
        return f"the action {self.action.type}"


class Outcome(Value):
    """The outcome of a call.

    Attributes:
        success: Whether it did what it should.
        result: What it gave, as JSON.
        error: Why it did not do it.
        is_transient: Whether another attempt may succeed.
        in_doubt: Whether it may have taken effect all the same.
        status: The status with which an API refused the call; None if none did.
    """

    success: bool
    result: JsonValue = None
    error: str = ""
    is_transient: bool = False
    in_doubt: bool = False
    status: int | None = None


def not_done(call: ActionCall, problem: str, **facts: Any) -> Outcome:
    """A call that failed before it had an effect."""
    text = f"{problem.rstrip('.')}; {call.what} did nothing" if call.unsafe else problem
    return Outcome(success=False, error=text, **facts)


def unanswered(call: ActionCall, problem: str, **facts: Any) -> Outcome:
    """A call that failed, and may have had its effect all the same."""
    if not call.unsafe:
        return Outcome(success=False, error=problem, **facts)
    doubt = f"{call.what} may have taken effect. Check what became of it before it is done again"
    return Outcome(success=False, error=f"{problem.rstrip('.')}; {doubt}", in_doubt=True, **facts)


class Executor(Protocol):
    """Does actions."""

    async def execute(self, call: ActionCall) -> Outcome:
        """Do an action once; a failure is an outcome, too."""
        ...


class UnsafeValueError(ValueError):
    """A value is not allowed in the place that it would fill."""


def parameters_of(
    command: JobCommand, item: Mapping[str, JsonValue], number: int
) -> dict[str, JsonValue]:
    """Put the values of an item into the parameters of a command.

    A text that is one placeholder becomes the value itself. In an address a value is escaped.

    Raises:
        UnsafeValueError: A value would change the path of an address.
    """
    if command.parameters is None:
        return dict(item)
    values = {ITEM: number, **item}
    return {
        name: _address(value, values) if name == "endpoint" else _filled(value, values)
        for name, value in command.parameters.items()
    }


def _filled(value: JsonValue, values: Mapping[str, JsonValue]) -> JsonValue:
    if isinstance(value, dict):
        filled = {name: _filled(part, values) for name, part in value.items()}
        return {name: value for name, value in filled.items() if value is not None}
    if isinstance(value, list | tuple):
        return [_filled(item, values) for item in cast("list[JsonValue]", value)]
    if not isinstance(value, str):
        return value
    whole = PLACEHOLDER.fullmatch(value)
    if whole:
        return values.get(whole[1])
    return PLACEHOLDER.sub(lambda found: _text(values.get(found[1])), value)


def _address(value: JsonValue, values: Mapping[str, JsonValue]) -> str:
    def escaped(found: Any) -> str:
        text = _text(values.get(found[1]))
        # A server would read these as the folder itself, or the one above.
        if text.strip(".") == "":
            raise UnsafeValueError(f"{text!r} cannot be part of an address")
        return quote(text, safe="")

    return PLACEHOLDER.sub(escaped, str(value))


def _text(value: JsonValue) -> str:
    return "" if value is None else str(value)
