"""How actions are done: functions of your own, data that is checked or extracted, and APIs."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, cast

from pydantic import JsonValue

from replan.base.failures import describe, is_fatal_for_run, is_transient
from replan.base.texts.storable import storable
from replan.base.user_code import KEY, call_with, parameters_of
from replan.jobs.actions import ActionCall, Executor, Outcome, unanswered
from replan.jobs.extraction.by_rules import RuleExtractor
from replan.jobs.extraction.port import messages_of
from replan.jobs.phases.collector import MISSING, InformationCollector


@dataclass(frozen=True)
class ActionExecutor:
    """Does the actions of a spec."""

    api: Executor | None = None  # calls APIs
    # The day to which words such as 'tomorrow' refer in extract_info.
    today: Callable[[], date] | None = None

    async def execute(self, call: ActionCall) -> Outcome:
        """Do an action once; a failure is an outcome, not an exception."""
        try:
            return await self._executed(call)
        except Exception as error:
            if is_fatal_for_run(error):
                raise
            return unanswered(call, describe(error), is_transient=is_transient(error))

    async def _executed(self, call: ActionCall) -> Outcome:
        match call.action.type:
            case "call_api" if self.api is not None:
                return await self.api.execute(call)
            case "validate_data":
                return Outcome(success=True, result=_validated(call))
            case "extract_info" if self.today is not None:
                return Outcome(success=True, result=await _extracted(call, self.today()))
            case _ if (function := call.action.run) is not None:
                key = {KEY: call.key} if KEY in parameters_of(function) else {}
                result = await call_with(function, **{**call.parameters, **key})
                return Outcome(success=True, result=as_json(result))
            case kind:
                return Outcome(success=False, error=f"Nothing here can do {kind}.")


def as_json(value: object) -> JsonValue:
    """Convert what other code returned into plain data that can be stored."""
    return storable(cast("JsonValue", json.loads(json.dumps(value, default=str))))


def _validated(call: ActionCall) -> JsonValue:
    """Check data by the slots of the command that the schema names."""
    data = cast("Mapping[str, object]", call.parameters["data"])
    command = call.spec.command(str(call.parameters["schema"]))
    if command is None:
        names = ", ".join(command.name for command in call.spec.commands)
        raise ValueError(f"there is no schema {call.parameters['schema']!r}; use one of {names}")
    taken = {name: value for name, value in data.items() if name in command.slots}
    collector = InformationCollector(call.spec, RuleExtractor())
    issues = collector.validate_info(taken, command.needs, call.job.language)
    wrong = [issue.model_dump(mode="json") for issue in issues if issue.code != MISSING]
    # One that is wrong has to be given again.
    missing = [name for name in command.needs if name in {issue.field for issue in issues}]
    return {"valid": not issues, "errors": [*wrong], "missing": [*missing]}


async def _extracted(call: ActionCall, today: date) -> JsonValue:
    """Find the values of fields in messages."""
    messages = messages_of(cast("Sequence[Any]", call.parameters["messages"]))
    fields = [str(name) for name in cast("Sequence[Any]", call.parameters["target_fields"])]
    collector = InformationCollector(call.spec, RuleExtractor())
    return {**await collector.extract_info(messages, fields, today)}
