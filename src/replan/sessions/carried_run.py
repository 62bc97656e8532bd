"""The run that waits, as a context carries it: signed with the agent's key where it has one."""

from typing import Any, cast

from pydantic import JsonValue

from replan.errors import ConfigurationError, ContextError
from replan.runs.travel.portable import PortableRun
from replan.secrets.signature import is_signature, signature_of
from replan.secrets.sources import learn_values
from replan.state.enhanced import EnhancedState
from replan.state.person.waiting import ask_of
from replan.state.questions import Question, fingerprint_of
from replan.state.rules import open_questions
from replan.state.session.context import AgentContext
from replan.state.session.context_fields import ValueReader
from replan.texts.storable import LARGEST

RUN = "run"
"""The key of `project_state` that has the run."""

_SIGNATURE = "signature"
_PATH = ("project_state", RUN)
_SHORTEST = 16


def context_key_of(given: str | bytes | None) -> bytes | None:
    """Read the key of an agent, which signs and seals what contexts carry."""
    if given is None:
        return None
    key = given.encode() if isinstance(given, str) else given
    if len(key) < _SHORTEST:
        fix = f"Give {_SHORTEST} bytes or more, for example secrets.token_bytes(32)."
        raise ConfigurationError("context_key", f"{len(key)} bytes", "this key is short", fix)
    learn_values([key])
    return key


def carried_run(context: AgentContext, key: bytes | None) -> PortableRun | None:
    """The run that a context carries; of one with a wrong signature nothing is read.

    Raises:
        ContextError: It cannot be used; names every bad field.
    """
    written = context.project_state.get(RUN)
    if written is None:
        return None
    if key is not None:
        fields = cast("dict[str, JsonValue]", written) if isinstance(written, dict) else {}
        plain = {name: each for name, each in fields.items() if name != _SIGNATURE}
        if not is_signature(fields.get(_SIGNATURE), key, context.session_id, _canonical(plain)):
            raise _unsigned()
    return PortableRun.of_json(written, _PATH)


def run_to_json(run: PortableRun, session_id: str, key: bytes | None) -> dict[str, JsonValue]:
    """A run as a context carries it."""
    written = cast("dict[str, JsonValue]", _canonical(run.to_json()))
    if key is None:
        return written
    return {**written, _SIGNATURE: signature_of(key, session_id, written)}


def asks_of_run(run: PortableRun | None) -> tuple[Question, ...]:
    """Read what a run waits for; empty if it was stopped, or does not exist."""
    if run is None or not run.waits:
        return ()
    if run.graphs is not None:
        return tuple(
            Question(
                key=each.key,
                text=each.text,
                fingerprint=fingerprint_of(each.key, each.text),
                interrupt=each.key,
                step_id=each.step_id,
                who=each.who,
            )
            for each in run.graphs.asked
        )
    approval = run.state.get("approval")
    if run.next == "plan_approval" and approval is not None:
        return (approval.question,)
    return tuple(ask_of(each) for each in open_questions(cast("EnhancedState", run.state)))


def _unsigned() -> ContextError:
    reading = ValueReader()
    problem = "this agent's key did not sign it for this session, or somebody changed it"
    fix = "Send the run as it was, or remove it from project_state and start again."
    reading.refuse((*_PATH, _SIGNATURE), None, problem, fix)
    return ContextError(list(reading.mistakes.values()))


def _canonical(value: Any) -> Any:
    """JSON as stores return it: some write 1.0 as 1."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < LARGEST else value
    if isinstance(value, list):
        return [_canonical(each) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {name: _canonical(each) for name, each in cast("dict[str, Any]", value).items()}
    return value
