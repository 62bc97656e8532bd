"""What a session keeps of the work of a team without a host: a thread, or a job."""

import binascii
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from pydantic import JsonValue
from typing_extensions import TypedDict

from replan.base.errors import InputError, JobError, mistake
from replan.base.secrets.signature import is_signature, signature_of
from replan.base.texts.storable import as_stored
from replan.base.values import restored
from replan.jobs.job import Job
from replan.jobs.job_reading import read_job, unconfirmed
from replan.jobs.spec.job_spec import JobSpec
from replan.jobs.views import shown_job, view_of
from replan.log.transcript import REPLY
from replan.pipelines.phases.suggestions import SUGGESTION
from replan.pipelines.task import Task
from replan.pipelines.turns.main_turn import TASKS
from replan.ports.thread_repository import ThreadRepository
from replan.runs.travel.portable import PortableRun
from replan.sessions.carried_run import RunCarrier, SessionSeal
from replan.state.enhanced import EnhancedState
from replan.state.pipeline.thread_rows import (
    QUESTIONS,
    THREADS,
    Rows,
    questions_in,
    thread_from,
    under_id,
    with_questions,
)
from replan.state.questions import Question
from replan.state.results import newest_results
from replan.state.session.context import AgentContext
from replan.state.session.context_fields import ValueReader
from replan.state.session.session import JOB, Seal, opened_note
from replan.storage.databases.faults import UnreadableRecordError

ProjectState = Mapping[str, JsonValue]


class KeptWork(ABC):
    """The work of a job or a pipeline between the turns of a session."""

    @abstractmethod
    def before(self, session: AgentContext, run: PortableRun | None) -> ProjectState:
        """Read what a session has of it, and check it before anything uses it.

        Args:
            session: The session.
            run: The run that goes on, if one does.

        Raises:
            UsageError: It cannot be used.
        """

    @abstractmethod
    async def after(
        self, run: EnhancedState, session: AgentContext, threads: ThreadRepository
    ) -> ProjectState:
        """The project state of a session after a run that is over."""

    def copied(self, run: PortableRun, session_id: str) -> ProjectState:
        """What of an open run the project state has, too, so that programs can read it."""
        return {}

    def seal(self, session_id: str) -> Seal | None:
        """What closes what users say, before it is recorded; None if nothing in it is secret."""
        return None

    def is_unfinished(self, session: AgentContext) -> bool:
        """Whether it was cut off, so that a turn without a message continues it."""
        return False

    def given_up(self, state: ProjectState) -> ProjectState:
        """A project state after a user gave it up for a new request."""
        return state


# pydantic makes no schema of the TypedDict of Python 3.11.


class _Status(TypedDict, total=False):
    phase: str
    error: str
    round: int


class _Suggestion(TypedDict):
    phase: str


_SETTINGS: Mapping[str, Any] = {
    "brief_status": _Status,
    SUGGESTION: _Suggestion | None,
    TASKS: list[Task],
    QUESTIONS: list[Question],
}
"""The settings of a thread that are not its handlers'."""


class ThreadWork(KeptWork):
    """The thread of a pipeline between the turns of a session."""

    def before(self, session: AgentContext, run: PortableRun | None) -> Mapping[str, JsonValue]:
        del run
        rows = thread_of_session(session)
        return {THREADS: {session.session_id: {**rows}}} if rows else {}

    def is_unfinished(self, session: AgentContext) -> bool:
        return has_work_left(carried_threads(session).get(session.session_id))

    async def after(
        self, run: EnhancedState, session: AgentContext, threads: ThreadRepository
    ) -> Mapping[str, JsonValue]:
        # A step that was done again began on another one; a run may have done nothing on any.
        done = [*(await threads.rows(run.get("run_id", ""))).values()]
        carried = carried_threads(session)
        if not done:
            return session.project_state
        rows: Rows = under_id(session.session_id, done[-1])
        if has_work_left(rows):
            before = cast("Rows", carried.get(session.session_id) or {})
            known = {question.key: question for question in questions_in(before)}
            rows = with_questions(rows, {**known, **run.get("questions", {})}.values())
        return {**session.project_state, THREADS: {**carried, session.session_id: {**rows}}}


def thread_of_session(session: AgentContext) -> Rows:
    """Read the thread of a session, and check it before anything uses it; empty if it has none.

    Raises:
        InputError: What is there are no threads.
        ContextError: The thread cannot be used; names every bad field.
        ThreadError: A row is missing or not valid.
    """
    written = carried_threads(session).get(session.session_id)
    if written is None:
        return {}
    reading, path = ValueReader(), ("project_state", THREADS, session.session_id)
    rows: Rows = reading.value(dict[str, JsonValue], written, path) or {}
    for place, row in rows.items():
        settings = row.get("settings") if isinstance(row, dict) else None
        for name, kind in _SETTINGS.items() if isinstance(settings, dict) else ():
            if name in cast("dict[str, JsonValue]", settings):
                where = (*path, place, "settings", name)
                reading.value(kind, cast("Any", settings)[name], where, restored, is_copied=True)
    reading.end()
    if rows:
        thread_from(rows)
    return rows


def has_work_left(rows: object) -> bool:
    """Whether there are tasks of a thread that are not done yet."""
    header = cast("dict[str, Any]", rows).get("") if isinstance(rows, dict) else None
    settings = cast("dict[str, Any]", header).get("settings") if isinstance(header, dict) else None
    return isinstance(settings, dict) and bool(cast("dict[str, Any]", settings).get(TASKS))


def carried_threads(session: AgentContext) -> dict[str, JsonValue]:
    """The threads that a context carries, by session."""
    carried = session.project_state.get(THREADS, {})
    if not isinstance(carried, dict):
        raise InputError("project_state['threads'] has no threads. Give it back as it was.")
    return carried


SECRETS = "job_secrets"
"""The key of the sealed part of the job in a session."""

SIGNATURE = "job_signature"
"""The key of the signature of both in a session."""

OWN_NAMES = (JOB, SECRETS, SIGNATURE)
"""The keys of `project_state` that are about the job."""

_CHANGED = "it is a copy of the job in the run that waits, and was changed"
_CHANGE = (
    "Say what is to change, such as 'name: value', or begin again with new_request. Otherwise send "
    "the copy as it was, or leave it out."
)
# A plan has the values in it, and what an action gave may repeat one.
_HIDDEN = ("plan", "planned_secrets", "confirmed", "intermediate_results")


@dataclass(frozen=True)
class JobWork(KeptWork):
    """Reads the job that a session goes on with, and writes what became of it."""

    spec: JobSpec
    carrier: RunCarrier
    stays: bool = False  # whether contexts stay in a storage that other processes read, too

    @cached_property
    def _has_secrets(self) -> bool:
        return any(slot.secret for slot in self.spec.slots)

    @cached_property
    def _key(self) -> bytes | None:
        """The key of jobs; None if there is none that all who read them have."""
        is_own = self._has_secrets and not self.stays
        return self.carrier.secret_key if is_own else self.carrier.key

    def seal(self, session_id: str) -> SessionSeal | None:
        is_sealed = self._has_secrets and self._key is not None
        return SessionSeal(self.carrier, session_id) if is_sealed else None

    def before(self, session: AgentContext, run: PortableRun | None) -> Mapping[str, JsonValue]:
        written = session.project_state.get(JOB)
        if run is not None and (copied := self.copied(run, session.session_id)):
            if written not in (None, as_stored(copied[JOB])):
                raise JobError([mistake(f"project_state.{JOB}", "...", _CHANGED, _CHANGE)])
            return {}
        if written is None:
            return {}
        job = read_job(self._opened(session), self.spec)
        return {JOB: (unconfirmed(job) if self._key is None else job).to_dict()}

    def copied(self, run: PortableRun, session_id: str) -> Mapping[str, JsonValue]:
        written = self._waiting(run, session_id)
        if written is None:
            return {}
        if self._has_secrets:
            written = shown_job(self.spec, read_job(written, self.spec)).to_dict()
        return {JOB: {**written, "history": []}}

    def _waiting(self, run: PortableRun, session_id: str) -> dict[str, Any] | None:
        """The job of a run that waits, or was stopped behind its last question."""
        replies = (note for key, note in reversed(run.rows.notes) if key.startswith(REPLY))
        note = next(replies, None)
        return None if note is None else opened_note(note, self.seal(session_id)).get(JOB)

    def given_up(self, state: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
        return {name: value for name, value in state.items() if name not in OWN_NAMES}

    async def after(
        self, run: EnhancedState, session: AgentContext, threads: ThreadRepository
    ) -> Mapping[str, JsonValue]:
        del threads
        found = newest_results(run).values()
        kept = [result.project_state[JOB] for result in found if JOB in result.project_state]
        if not kept:
            return session.project_state
        job = kept[-1]
        if isinstance(job, str):
            job = SessionSeal(self.carrier, session.session_id).opened(job)
        return self._written(read_job(job, self.spec), session)

    def view(
        self, session: AgentContext, run: PortableRun | None
    ) -> Mapping[str, JsonValue] | None:
        """The status of a session's job, without secrets; None if the session has no job."""
        written: Any = None if run is None else self._waiting(run, session.session_id)
        written = written or self.before(session, None).get(JOB)
        return None if written is None else view_of(self.spec, read_job(written, self.spec))

    def _written(self, job: Job, session: AgentContext) -> dict[str, JsonValue]:
        """The project state of a session with a job in it."""
        state = {**self.given_up(session.project_state), **self._parts(job, session)}
        if self._key is None:
            return state
        return {**state, SIGNATURE: signature_of(self._key, *_signed(state, session))}

    def _parts(self, job: Job, session: AgentContext) -> dict[str, JsonValue]:
        """The job as it is shown, and what belongs to it that is not."""
        whole = cast("dict[str, JsonValue]", job.to_dict())
        if not self._has_secrets:
            return {JOB: whole}
        shown = shown_job(self.spec, job)
        if self._key is None:
            # What is secret is asked for again.
            return {JOB: cast("JsonValue", shown.to_dict())}
        # A value that repeats a secret one is masked, too.
        masked = {
            name: value
            for name, value in job.collected_info.items()
            if shown.collected_info[name] != value
        }
        secret: JsonValue = {"collected_info": masked, **{name: whole[name] for name in _HIDDEN}}
        shown = shown.replace(plan=None, confirmed="", intermediate_results=())
        return {
            JOB: cast("JsonValue", shown.to_dict()),
            SECRETS: self.carrier.closed(secret, _cipher_location(whole, session)),
        }

    def _opened(self, session: AgentContext) -> Any:
        """The JSON of the whole job of a session.

        Raises:
            JobError: What is sealed cannot be opened here, or somebody changed it.
        """
        state, job = session.project_state, session.project_state[JOB]
        signed = _signed(state, session)
        if self._key and not is_signature(state.get(SIGNATURE), self._key, *signed):
            raise _unopened(SECRETS if self._has_secrets else SIGNATURE)
        if SECRETS not in state or self._key is None or not isinstance(job, dict):
            return job
        try:
            secret = self.carrier.opened(str(state[SECRETS]), _cipher_location(job, session))
        except (binascii.Error, UnreadableRecordError) as error:
            raise _unopened(SECRETS) from error
        collected = cast("dict[str, JsonValue]", job["collected_info"])
        return {**job, **secret, "collected_info": {**collected, **secret["collected_info"]}}


def _cipher_location(job: Mapping[str, JsonValue], session: AgentContext) -> tuple[str, ...]:
    return (JOB, session.session_id, str(job.get("type")), str(job.get("id")))


def _signed(state: Mapping[str, JsonValue], session: AgentContext) -> list[JsonValue]:
    """What is signed of a session."""
    return [JOB, session.session_id, as_stored(state.get(JOB)), state.get(SECRETS)]


def _unopened(name: str) -> JobError:
    # Asking again for what is lost would do again what was done with it.
    problem = "it was sealed with another key or for another session, or somebody changed it"
    fix = (
        "Give all agents of a session the same context_key and the unchanged job, or start again "
        "with new_request."
    )
    return JobError([mistake(f"project_state.{name}", "***", problem, fix)])
