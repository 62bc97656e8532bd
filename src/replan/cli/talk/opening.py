"""Open what a conversation needs: the storage, the agent, the client of this user's sessions."""

import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from replan.assembly.agents import build_agent
from replan.assembly.environment import models_from_environment
from replan.assembly.jobs import job_team
from replan.assembly.pipelines import pipeline_team
from replan.cli.shared.carry_out import open_traces_asked_for
from replan.cli.shared.site import Site
from replan.cli.user_files.kept_sessions import find_session
from replan.cli.user_files.named import LAST
from replan.cli.user_files.order_signature import user_key
from replan.cli.user_files.orders import Order, read_team
from replan.cli.user_files.storage_location import open_location
from replan.jobs.spec.job_file import read_job_file
from replan.jobs.spec.job_spec import JobSpec
from replan.log.labels import SESSION
from replan.pipelines.phases.agent_and_handler import BaseAgent, Operation
from replan.ports.built_in import built_in_models
from replan.ports.model_provider import ModelProvider
from replan.ports.run_book import RunRecord
from replan.ports.session_store import SessionKey
from replan.ports.storage import Storage
from replan.sessions.client.adapter import ClientAgentAdapter
from replan.sessions.session_runs import labels_of, lock_name, name_of_turn, run_in
from replan.state.conversation.facts import Facts, facts_of
from replan.state.session.context import AgentContext
from replan.team.file_team import DEFAULT_TEAM
from replan.team.kinds.pipeline_kind import pipeline_named
from replan.team.team import Team
from replan.team.team_file import TeamFile
from replan.traces.option import Traces
from replan.views.live.notices import tracing_notice

_ID_BYTES = 4
_LOOKED_AT = 20
_WHOLE = 200
"""A title that is shorter is the whole message."""


@dataclass(frozen=True, kw_only=True)
class Partner:
    """Who a conversation is with, in the form of a team."""

    team: Team
    models: ModelProvider
    name: str  # as a session remembers it
    workspace: Path
    notice: str | None = None
    job: JobSpec | None = None  # a job alone
    pipeline: type[BaseAgent] | None = None  # the main agent of a pipeline alone

    @property
    def has_secrets(self) -> bool:
        """Whether what is typed may be a secret."""
        return self.job is not None and any(slot.secret for slot in self.job.slots)

    @property
    def is_alone(self) -> bool:
        """Whether it is a job or a pipeline alone."""
        return self.job is not None or self.pipeline is not None

    async def operations(self) -> list[Operation]:
        """What a user can request of the pipeline, as its main agent lists it."""
        if self.pipeline is None:
            return []
        agent = await self.pipeline.create()
        return [*await agent.load_operations(agent)]


@dataclass(frozen=True, kw_only=True)
class Opened:
    """What a conversation works with."""

    client: ClientAgentAdapter
    storage: Storage
    user: str
    facts: Facts  # what is remembered about this user
    key: bytes | None  # signs the runs of sessions
    notices: tuple[str, ...]  # what is said before the first message
    partner: Partner

    async def killed_message(self, context: AgentContext) -> str | None:
        """The message of the newest turn of a session, if the process that took it was killed.

        It is empty if unknown; None if no turn was killed.
        """
        killed = await self.killed_turn(context.session_id)
        if killed is None:
            return None
        return killed.title if len(killed.title) < _WHOLE else ""

    async def answers_on_record(
        self, context: AgentContext
    ) -> list[tuple[str, dict[str, JsonValue]]]:
        """The answers to the run that waits which are on record, by the names of their turns."""
        key, run_id = SessionKey("", self.user, context.session_id), run_in(context)
        if not run_id or await self.storage.holds.is_held(lock_name(key)):
            return []
        requests: Any = await self.storage.log.requests([run_id], taken=True)
        return [
            (request.name, {key: row["answer"] for key, row in request.answers.items()})
            for request in requests
            if request.kind == "answer"
        ]

    def turn_named(self, session_id: str, turn_id: str) -> str:
        """The name of a turn of this user."""
        return name_of_turn(SessionKey("", self.user, session_id), turn_id)

    async def killed_turn(self, session_id: str = "") -> RunRecord | None:
        """The run of the newest turn, if the process that took it was killed.

        Args:
            session_id: The session; empty for whichever is the newest.
        """
        labels = labels_of(SessionKey("", self.user, session_id))
        recent = await self.storage.runs.recent(_LOOKED_AT, labels)
        newest = next((run for run in recent if SESSION in run.labels), None)
        if newest is None or newest.outcome != "running" or await self.storage.works_on(newest):
            return None
        return newest


@asynccontextmanager
async def open_conversation(
    order: Order,
    user: str,
    site: Site,
    *,
    job: Path | None = None,
    pipeline: str | None = None,
) -> AsyncGenerator[Opened]:
    """Open what a conversation with a team, about a job, or with a pipeline needs."""
    with open_traces_asked_for(site) as (traces, notice):
        if job is not None:
            partner = partner_of_job(job, order, site, traces)
        elif pipeline is not None:
            partner = partner_of_pipeline(pipeline, order, site, traces)
        else:
            partner = partner_in_file(order, site, traces)
        key = user_key()
        async with open_location(site.location) as storage:
            agent = build_agent(
                partner.team, models=partner.models, store=storage.store, context_key=key
            )
            async with agent:
                notices = tracing_notice(site.environment), notice, partner.notice
                yield Opened(
                    storage=storage,
                    user=user,
                    client=ClientAgentAdapter(storage, agent, user=user, agent_name=partner.name),
                    facts=facts_of(storage.store, user, ""),
                    key=key,
                    notices=tuple(each for each in notices if each),
                    partner=partner,
                )


def partner_in_file(order: Order, site: Site, traces: Traces | None) -> Partner:
    """The team of a file, or the default one."""
    team = read_team(order, site.environment, traces)
    built_in = built_in_models().get(str(team.config.host.model))
    return Partner(
        team=team.config,
        models=team.models,
        name=_team_identity(team),
        workspace=Path(team.config.workspace or Path()),
        notice=built_in and built_in.notice,
    )


def partner_of_pipeline(reference: str, order: Order, site: Site, traces: Traces | None) -> Partner:
    """A pipeline alone; its module is in the folder, or here."""
    folder = order.directory or Path()
    main = pipeline_named(reference, folder)
    team = pipeline_team(main, model=_own_model(order), traces=traces)
    return Partner(
        team=team,
        models=models_from_environment(order.base_url, site.environment),
        name=f"the pipeline '{reference}'",
        workspace=folder,
        notice=f"the pipeline {main.__name__}",
        pipeline=main,
    )


def partner_of_job(path: Path, order: Order, site: Site, traces: Traces | None) -> Partner:
    """A job alone."""
    spec = read_job_file(path)
    offers = ", ".join(command.called("en") for command in spec.commands)
    team = job_team(spec, model=_own_model(order), traces=traces)
    return Partner(
        team=team,
        models=models_from_environment(order.base_url, site.environment),
        name=f"the job '{spec.name}'",
        workspace=path.parent,
        notice=f"the job {spec.name}: {offers}; at most {spec.max_turns} turns",
        job=spec,
    )


def _team_identity(team: TeamFile) -> str:
    """The identity of a team: its name, else its file."""
    if team.path == DEFAULT_TEAM:
        return "the default team"
    has_name = "name" in team.config.model_fields_set
    return f"the team '{team.config.name if has_name else team.path.absolute()}'"


def _own_model(order: Order) -> str | None:
    """The model of a job or a pipeline; the offline model reads no messages, so it is none."""
    return None if order.model in built_in_models() else order.model


async def choose_session(session_name: str | None, opened: Opened) -> str:
    """The id of the requested session, or a new one."""
    if session_name is None:
        return new_session()
    killed = await opened.killed_turn()
    if killed is None:
        return await find_session(opened.client, session_name)
    # A session that was killed in its first turn has nothing but this run.
    session_id = killed.labels[SESSION]
    newest = await opened.client.sessions(1)
    is_newer = not newest or newest[0].updated_at < killed.updated_at
    is_meant = is_newer if session_name == LAST else session_name == session_id
    return session_id if is_meant else await find_session(opened.client, session_name)


def new_session() -> str:
    """A new id of a session."""
    return secrets.token_hex(_ID_BYTES)
