"""The job of a session between its turns, as its context carries it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pydantic import JsonValue

from replan.jobs.job_reading import read_job, unconfirmed
from replan.jobs.spec.job_spec import JobSpec
from replan.jobs.views import view_of
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

    @cached_property
    def _seal(self) -> JobSeal:
        has_secrets = any(slot.secret for slot in self.spec.slots)
        return job_seal(self.spec, self.carrier.secret_key if has_secrets else self.carrier.key)

    def before(self, session: AgentContext) -> Mapping[str, JsonValue]:
        written = self._seal.opened(session)
        if written is None:
            return {}
        job = read_job(written, self.spec)
        return {JOB: (job if self._seal.key is not None else unconfirmed(job)).to_dict()}

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
        job, seal = kept[-1], SessionSeal(self.carrier, session.session_id)
        whole = seal.opened(job) if isinstance(job, str) else job
        return self._seal.written(read_job(whole, self.spec), session)

    def view(
        self, session: AgentContext, asks: tuple[Question, ...]
    ) -> Mapping[str, JsonValue] | None:
        """The status of a session's job, without secrets; None if the session has no job."""
        asked = [each.details for each in asks if isinstance(each.details, dict)]
        if asked:
            return asked[0]
        written = self._seal.opened(session)
        return None if written is None else view_of(self.spec, read_job(written, self.spec))
