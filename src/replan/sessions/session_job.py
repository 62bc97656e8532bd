"""The job of a session between its turns, as its context carries it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pydantic import JsonValue

from replan.jobs.job_reading import read_job, unconfirmed
from replan.jobs.spec.job_spec import JobSpec
from replan.jobs.views import shown_job, view_of
from replan.ports.thread_repository import ThreadRepository
from replan.sessions.carried_run import RunCarrier, SessionSeal
from replan.sessions.sealed_job import OWN_NAMES, JobSeal, job_seal
from replan.state.enhanced import EnhancedState
from replan.state.questions import Question
from replan.state.session.context import AgentContext
from replan.state.session.session import JOB


@dataclass(frozen=True)
class JobWork:
    """Reads the job that a session goes on with, and writes what became of it."""

    spec: JobSpec
    carrier: RunCarrier
    stays: bool = False  # whether contexts stay in a storage that other processes read, too

    @cached_property
    def _has_secrets(self) -> bool:
        return any(slot.secret for slot in self.spec.slots)

    @cached_property
    def _seal(self) -> JobSeal | None:
        """What writes jobs; None if secrets have no key that other processes have, too."""
        if not self._has_secrets:
            return job_seal(self.spec, self.carrier.key)
        key = self.carrier.key if self.stays else self.carrier.secret_key
        return None if key is None else job_seal(self.spec, key)

    def seal(self, session_id: str) -> SessionSeal | None:
        is_sealed = self._has_secrets and self._seal is not None
        return SessionSeal(self.carrier, session_id) if is_sealed else None

    def before(self, session: AgentContext) -> Mapping[str, JsonValue]:
        seal = self._seal
        written = session.project_state.get(JOB) if seal is None else seal.opened(session)
        if written is None:
            return {}
        job = read_job(written, self.spec)
        is_signed = seal is not None and seal.key is not None
        return {JOB: (job if is_signed else unconfirmed(job)).to_dict()}

    def is_unfinished(self, session: AgentContext) -> bool:
        del session
        return False

    def given_up(self, state: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
        return {name: each for name, each in state.items() if name not in OWN_NAMES}

    async def after(
        self, run: EnhancedState, session: AgentContext, threads: ThreadRepository
    ) -> Mapping[str, JsonValue]:
        del threads
        found = run.get("current_specialist_results", {}).values()
        kept = [each.project_state[JOB] for each in found if JOB in each.project_state]
        if not kept:
            return session.project_state
        job = kept[-1]
        if isinstance(job, str):
            job = SessionSeal(self.carrier, session.session_id).opened(job)
        whole = read_job(job, self.spec)
        if self._seal is not None:
            return self._seal.written(whole, session)
        # What is secret is asked for again.
        return {**session.project_state, JOB: shown_job(self.spec, whole).to_dict()}

    def view(
        self, session: AgentContext, asks: tuple[Question, ...]
    ) -> Mapping[str, JsonValue] | None:
        """The status of a session's job, without secrets; None if the session has no job."""
        asked = [each.details for each in asks if isinstance(each.details, dict)]
        if asked:
            return asked[0]
        written = self.before(session).get(JOB)
        return None if written is None else view_of(self.spec, read_job(written, self.spec))
