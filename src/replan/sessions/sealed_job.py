"""A job in a context: signed, and everything that could reveal values of secret slots is sealed."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from secrets import token_bytes
from typing import cast

from pydantic import JsonValue

from replan.errors import InputError, JobError, mistake
from replan.jobs.job import Job
from replan.jobs.sayings import is_small_talk
from replan.jobs.spec.job_spec import JobSpec
from replan.jobs.views import shown_job, without_secrets
from replan.secrets.known import MASK
from replan.secrets.signature import is_signature, signature_of
from replan.state.session.context import AgentContext
from replan.state.session.session import JOB
from replan.storage.encryption import Cipher, cipher_of
from replan.storage.faults import UnreadableRecordError
from replan.texts.storable import as_stored

SECRETS = "job_secrets"
"""The key of the sealed part of the job in a session."""

SIGNATURE = "job_signature"
"""The key of the signature of both in a session."""

OWN_NAMES = (JOB, SECRETS, SIGNATURE)
"""The keys of `project_state` that are about the job."""

_SALT = b"a job in context"
# A plan has the values in it, and what an action gave may repeat one.
_OWN_KEY = 32  # bytes
_HIDDEN = ("plan", "planned_secrets", "confirmed", "intermediate_results")


@dataclass(frozen=True)
class JobSeal:
    """Writes the jobs of a spec into sessions, and reads them.

    Attributes:
        spec: The spec.
        seal: Seals the values of secret slots; None if there are none.
        key: Signs the job for its session; None if nobody can tell whether it was changed.
    """

    spec: JobSpec
    seal: Cipher | None
    key: bytes | None

    def written(self, job: Job, session: AgentContext) -> dict[str, JsonValue]:
        """Return the project state of a session with a job in it."""
        own = (SECRETS, SIGNATURE)
        before = {name: each for name, each in session.project_state.items() if name not in own}
        state = {**before, **self._parts(job, session)}
        if self.key is None:
            return state
        signature = signature_of(self.key, *_signed(state, session))
        return {**state, SIGNATURE: signature}

    def _parts(self, job: Job, session: AgentContext) -> dict[str, JsonValue]:
        whole = cast("dict[str, JsonValue]", job.to_dict())
        if self.seal is None:
            return {JOB: whole}
        shown = shown_job(self.spec, job)
        # A value that repeats a secret one is masked, too.
        secret = {
            name: value
            for name, value in job.collected_info.items()
            if shown.collected_info[name] != value
        }
        hidden: JsonValue = {"collected_info": secret, **{name: whole[name] for name in _HIDDEN}}
        closed = self.seal.encrypt(hidden, *_place(whole, session))
        shown = shown.replace(plan=None, confirmed="", intermediate_results=())
        return {
            JOB: cast("JsonValue", shown.to_dict()),
            SECRETS: base64.b64encode(closed).decode(),
        }

    def opened(self, session: AgentContext) -> dict[str, JsonValue] | None:
        """Return the JSON of the whole job of a session; None if there is none.

        Raises:
            InputError: What is there is no job.
            JobError: What is sealed cannot be opened here, or somebody changed it.
        """
        job = session.project_state.get(JOB)
        if job is None:
            return None
        if not isinstance(job, dict):
            raise InputError(
                "project_state['job'] is not a job. Leave it out, or send it back unchanged."
            )
        found = session.project_state.get(SIGNATURE)
        if self.key is not None and not is_signature(
            found, self.key, *_signed(session.project_state, session)
        ):
            raise _unopened(SIGNATURE if self.seal is None else SECRETS)
        sealed, known = session.project_state.get(SECRETS), job.get("collected_info", {})
        if self.seal is None or sealed is None or not isinstance(known, dict):
            return job
        try:
            closed = base64.b64decode(str(sealed), validate=True)
            hidden = self.seal.decrypt(closed, *_place(job, session))
        except (binascii.Error, UnreadableRecordError) as error:
            raise _unopened(SECRETS) from error
        return {**job, **hidden, "collected_info": {**known, **hidden["collected_info"]}}

    def without_secrets(self, text: str, job: Job) -> str:
        """A text without the values of a job's secret slots."""
        return without_secrets(self.spec, job, text)

    def shown_message(self, text: str, job: Job) -> str:
        """The user's message of the turn of this job, without secrets, even invalid ones."""
        given_names = (
            name
            for step in job.history
            if step.turn == job.turns and step.what == "heard"
            for name in step.slots
        )
        values = [job.collected_info.get(name) for name in given_names if self._is_secret(name)]
        # A value that was refused, or written in another way, cannot be recognised in the rest.
        is_hidden = any(value is None or str(value) not in text for value in values)
        if is_hidden or (
            not values and self._was_asked_for_secret(job) and not is_small_talk(text)
        ):
            return MASK
        return self.spec.without_forms(self.without_secrets(text, job))

    def _was_asked_for_secret(self, job: Job) -> bool:
        """Whether the question before this turn was about a secret slot."""
        asked = [
            each.slots for each in job.history if each.what == "asked" and each.turn < job.turns
        ]
        return any(map(self._is_secret, asked[-1])) if asked else False

    def _is_secret(self, name: str) -> bool:
        return self.spec.knows(name) and self.spec.slot(name).secret


def _place(job: Mapping[str, JsonValue], session: AgentContext) -> tuple[str, ...]:
    return (JOB, session.session_id, str(job.get("type")), str(job.get("id")))


def _signed(state: Mapping[str, JsonValue], session: AgentContext) -> list[JsonValue]:
    """What is signed of a session."""
    return [JOB, session.session_id, as_stored(state.get(JOB)), state.get(SECRETS)]


def job_seal(spec: JobSpec, key: bytes | None) -> JobSeal:
    """Create the serializer of the jobs of a spec.

    Args:
        spec: The spec.
        key: The key of all agents of a session. Without it, jobs with secret slots are for this
            serializer alone, and others are not signed.

    Raises:
        ConfigurationError: The spec has secret slots, and what encrypts is not installed.
    """
    has_secrets = any(slot.secret for slot in spec.slots)
    if key is None and has_secrets:
        key = token_bytes(_OWN_KEY)
    seal = cipher_of(key, _SALT) if key is not None and has_secrets else None
    return JobSeal(spec, seal, key)


def _unopened(name: str) -> JobError:
    # Asking again for what is lost would do again what was done with it.
    problem = "it was sealed with another key or for another session, or somebody changed it"
    fix = (
        "Give all agents of a session the same context_key and the unchanged job, or start again "
        "with new_request."
    )
    return JobError([mistake(f"project_state.{name}", "***", problem, fix)])
