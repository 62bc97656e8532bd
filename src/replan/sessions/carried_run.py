"""The run that waits, as a context carries it: signed with the agent's key where it has one."""

from typing import Any, cast

from pydantic import JsonValue

from replan.errors import ConfigurationError, ContextError
from replan.host.outside_plan import without_looser_options
from replan.runs.travel.portable import PortableRun
from replan.secrets.signature import is_signature, signature_of
from replan.secrets.sources import learn_values
from replan.services import Services
from replan.state.enhanced import EnhancedState, settings_of
from replan.state.limits import RunSettings
from replan.state.person.waiting import ask_of
from replan.state.questions import Question, fingerprint_of
from replan.state.rules import open_questions
from replan.state.session.context import AgentContext
from replan.state.session.context_fields import ValueReader
from replan.state.tightening import tightened
from replan.texts.storable import as_stored

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
        if not is_signature(fields.get(_SIGNATURE), key, context.session_id, as_stored(plain)):
            raise _unsigned()
    return PortableRun.of_json(written, _PATH)


def within_team(run: PortableRun, services: Services, asked: RunSettings | None) -> PortableRun:
    """A run that nobody signed, with nothing looser than the team or the operator allows."""
    known, plan = settings_of(cast("EnhancedState", run.state)), run.state.get("current_plan")
    allowed = services.settings.overridden_by(asked)
    held = tightened(allowed, known, services.open_to_clients)
    within = allowed.overridden_by(held).replace(memory=held.memory, rag=held.rag)
    changed: dict[str, Any] = {} if within == known else {"settings": within}
    if plan is not None and (bounded := without_looser_options(plan, services)) != plan:
        changed["current_plan"] = bounded
    return run.replace(state={**run.state, **changed}) if changed else run


def run_to_json(run: PortableRun, session_id: str, key: bytes | None) -> dict[str, JsonValue]:
    """A run as a context carries it."""
    written = cast("dict[str, JsonValue]", as_stored(run.to_json()))
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
