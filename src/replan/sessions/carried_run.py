"""The run that waits, as a context carries it: compressed, signed, and encrypted if need be."""

import base64
import binascii
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from secrets import token_bytes
from typing import Any, cast

from pydantic import JsonValue

from replan.base.errors import ConfigurationError, ContextError
from replan.base.secrets.signature import is_signature, signature_of
from replan.base.secrets.sources import learn_values
from replan.base.values import Value, fields_in
from replan.nodes.host.plan_bounds import without_looser_options
from replan.runs.travel.portable import PortableRun
from replan.specialists.services import Services
from replan.specialists.steps.board import QUESTIONS
from replan.state.enhanced import EnhancedState, settings_of
from replan.state.limits import RunSettings
from replan.state.person.waiting import ask_of
from replan.state.questions import Question
from replan.state.rules import open_questions
from replan.state.session.context import AgentContext
from replan.state.session.context_fields import MOST_BYTES, ValueReader
from replan.state.session.session import SEALED
from replan.state.tightening import tightened
from replan.storage.databases.cipher import Cipher
from replan.storage.databases.encryption import cipher_of
from replan.storage.databases.faults import UnreadableRecordError

RUN = "run"
"""The key of `project_state` that has the run."""

_SIGNATURE = "signature"
_PATH = ("project_state", RUN)
_SHORTEST = 16
_OWN_KEY = 32
_SALT = b"a run in a context"
_FIX = "Send the run as it was, or remove it from project_state and start again."


def context_key_of(context_key: str | bytes | None) -> bytes | None:
    """Read the key of an agent, which signs and encrypts what contexts carry."""
    if context_key is None:
        return None
    key = context_key.encode() if isinstance(context_key, str) else context_key
    if len(key) < _SHORTEST:
        fix = f"Give {_SHORTEST} bytes or more, for example secrets.token_bytes(32)."
        raise ConfigurationError("context_key", f"{len(key)} bytes", "this key is short", fix)
    learn_values([key])
    return key


class _Carried(Value):
    """A run in a context, before it is unpacked."""

    run_id: str
    packed: str  # compressed JSON in base64, encrypted if the run has secrets
    is_encrypted: bool = False


@dataclass(frozen=True, kw_only=True)
class RunCarrier:
    """Writes runs into the contexts of sessions, and reads them.

    Attributes:
        key: The key of all agents of a session, which signs runs; None if nothing signs them.
        always_secret: Whether every run is encrypted, since a specialist takes secret values.
    """

    key: bytes | None = None
    always_secret: bool = False
    _own_key: bytes = field(default_factory=lambda: token_bytes(_OWN_KEY), repr=False)

    def __post_init__(self) -> None:
        # What will be needed is missed when the agent is built.
        _ = self._cipher if self.always_secret else None

    @property
    def secret_key(self) -> bytes:
        """The key of secrets: without one of all agents, no other agent opens them."""
        return self.key or self._own_key

    @cached_property
    def _cipher(self) -> Cipher:
        return cipher_of(self.secret_key, _SALT)

    def closed(self, value: JsonValue, place: Sequence[str]) -> str:
        """Encrypt what belongs to one place."""
        return base64.b64encode(self._cipher.encrypt(value, *place)).decode()

    def opened(self, closed: str, place: Sequence[str]) -> Any:
        """Decrypt what was encrypted for a place.

        Raises:
            binascii.Error: It is no base64.
            UnreadableRecordError: Another key encrypted it, or it was changed.
        """
        return self._cipher.decrypt(base64.b64decode(closed, validate=True), *place)

    def written(
        self, run: PortableRun, session_id: str, *, stays: bool = False
    ) -> dict[str, JsonValue]:
        """A run as a context of the session carries it.

        Args:
            run: The run.
            session_id: The session.
            stays: Whether the context stays in the storage of the run, which encrypts both with
                its own key, or neither.

        Raises:
            ConfigurationError: It has secrets, and what encrypts is not installed.
        """
        packed = packed_run(run.to_json())
        written: dict[str, JsonValue] = {"run_id": run.run_id, "packed": packed}
        is_open = stays and self.key is None
        if not is_open and (self.always_secret or _has_secrets(run)):
            encrypted = self.closed(packed, _cipher_location(session_id, run.run_id))
            written = {"run_id": run.run_id, "packed": encrypted, "is_encrypted": True}
        if self.key is None:
            return written
        return {**written, _SIGNATURE: signature_of(self.key, session_id, written)}

    def carried(self, context: AgentContext) -> PortableRun | None:
        """The run that a context carries; of one with a wrong signature nothing is read.

        Raises:
            ContextError: It cannot be used; names every bad field.
        """
        written = context.project_state.get(RUN)
        if written is None:
            return None
        fields = fields_in(written)
        plain = {name: value for name, value in fields.items() if name != _SIGNATURE}
        found = fields.get(_SIGNATURE)
        if self.key is not None and not is_signature(found, self.key, context.session_id, plain):
            raise _refused(
                _SIGNATURE, "this agent's key did not sign it for this session, or it was changed"
            )
        reading = ValueReader()
        carried: _Carried | None = reading.value(_Carried, written, _PATH)
        reading.end()
        return PortableRun.of_json(self._unpacked(cast("_Carried", carried), context), _PATH)

    def _unpacked(self, carried: _Carried, context: AgentContext) -> Any:
        packed = carried.packed
        if carried.is_encrypted:
            try:
                packed = str(
                    self.opened(packed, _cipher_location(context.session_id, carried.run_id))
                )
            except (binascii.Error, UnreadableRecordError) as error:
                raise _refused(
                    "packed",
                    "it cannot be decrypted: another key encrypted it, or it was changed",
                    "Give every agent of this session the same context_key=, or begin again with "
                    "new_request=True.",
                ) from error
        return unpacked_run(packed)


@dataclass(frozen=True)
class SessionSeal:
    """Closes what the runs of a session record of secrets, with the key of its agents."""

    carrier: RunCarrier
    session_id: str

    def closed(self, value: JsonValue) -> str:
        return f"{SEALED}{self.carrier.closed(value, self._own_place)}"

    def opened(self, text: str) -> Any:
        try:
            return self.carrier.opened(text.removeprefix(SEALED), self._own_place)
        except (binascii.Error, UnreadableRecordError) as error:
            raise _refused("rows", "another key sealed it, or it was changed") from error

    @property
    def _own_place(self) -> tuple[str, ...]:
        return (RUN, self.session_id)


def carrier_of(services: Services, key: bytes | None) -> RunCarrier:
    """What writes the runs of a team into contexts."""
    specialists = services.specialists.values()
    secret = any(getattr(specialist, "takes_secrets", False) for specialist in specialists)
    return RunCarrier(key=key, always_secret=secret)


def packed_run(written: Mapping[str, JsonValue]) -> str:
    """Compress the JSON of a run."""
    text = json.dumps(written, separators=(",", ":"), ensure_ascii=False)
    return base64.b64encode(zlib.compress(text.encode("utf-8", "surrogatepass"))).decode()


def unpacked_run(packed: str) -> Any:
    """The JSON of a run.

    Raises:
        ContextError: It is damaged, or larger than any context may be.
    """
    try:
        inflating = zlib.decompressobj()
        data = inflating.decompress(base64.b64decode(packed, validate=True), MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise _refused("packed", f"it has more than {MOST_BYTES:,} bytes when it is unpacked")
        if not inflating.eof:
            raise _refused("packed", "it is cut off")
        return json.loads(data.decode("utf-8", "surrogatepass"))
    except (ValueError, zlib.error, RecursionError) as error:
        raise _refused("packed", "it is damaged") from error


def _has_secrets(run: PortableRun) -> bool:
    """Whether a person was asked for something secret."""
    questions: Mapping[str, Question] = run.state.get("questions", {})
    notes = [note for key, note in run.rows.notes if key.startswith(QUESTIONS)]
    return any(question.secret for question in questions.values()) or any(
        isinstance(note, dict) and note.get("secret") for note in notes
    )


def _cipher_location(session_id: str, run_id: str) -> tuple[str, ...]:
    return (RUN, session_id, run_id)


def within_team(
    run: PortableRun, services: Services, operator_settings: RunSettings | None
) -> PortableRun:
    """A run that nobody signed, with nothing looser than the team or the operator allows."""
    settings, plan = settings_of(cast("EnhancedState", run.state)), run.state.get("current_plan")
    allowed = services.settings.overridden_by(operator_settings)
    held = tightened(allowed, settings, services.client_overrides)
    within = allowed.overridden_by(held).replace(memory=held.memory, rag=held.rag)
    changed: dict[str, Any] = {} if within == settings else {"settings": within}
    if plan is not None and (bounded := without_looser_options(plan, services)) != plan:
        changed["current_plan"] = bounded
    return run.replace(state={**run.state, **changed}) if changed else run


def asks_of_run(run: PortableRun | None) -> tuple[Question, ...]:
    """Read what a run waits for; empty if it was stopped, or does not exist."""
    if run is None or not run.waits:
        return ()
    if run.asked:
        return run.asked
    approval = run.state.get("approval")
    if run.next == "plan_approval" and approval is not None:
        return (approval,)
    return tuple(ask_of(question) for question in open_questions(cast("EnhancedState", run.state)))


def _refused(field: str, problem: str, fix: str = _FIX) -> ContextError:
    reading = ValueReader()
    reading.refuse((*_PATH, field), None, problem, fix)
    return ContextError(list(reading.mistakes.values()))
