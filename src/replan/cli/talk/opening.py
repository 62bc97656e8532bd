"""Open what a conversation needs: the storage, the agent, the client of this user's sessions."""

import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from replan.assembly import build_agent
from replan.cli.carry_out import traced
from replan.cli.kept.kept_sessions import found_session
from replan.cli.kept.orders import Order, team_of_order
from replan.cli.kept.place import opened
from replan.cli.kept.signature import own_key
from replan.cli.site import Site
from replan.cli.views.notices import tracing_notice
from replan.facts.kept import Facts, facts_of
from replan.job_assembly import job_agent
from replan.jobs.job_file import read_job_file
from replan.jobs.spec import JobSpec
from replan.ports.built_in import built_in_models
from replan.sessions.client import ClientAgentAdapter

_ID_BYTES = 4


@dataclass(frozen=True, kw_only=True)
class Opened:
    """What a conversation works with."""

    client: ClientAgentAdapter
    facts: Facts  # what is remembered of this user
    key: bytes | None  # signs the runs of sessions
    workspace: Path
    notices: tuple[str, ...]  # what is said before the first message
    job: JobSpec | None = None  # what the conversation is about, in the place of a team


@asynccontextmanager
async def opened_talk(order: Order, user: str, site: Site) -> AsyncGenerator[Opened]:
    """Open what a conversation needs."""
    with traced(site) as (traces, notice):
        team = team_of_order(order, site.environment, traces)
        key = own_key()
        async with opened(site.place) as storage:
            agent = build_agent(
                team.config, models=team.models, store=storage.store, context_key=key
            )
            async with agent:
                built_in = built_in_models().get(str(team.config.host.model))
                told = tracing_notice(site.environment), notice, built_in and built_in.notice
                yield Opened(
                    client=ClientAgentAdapter(storage, agent, user=user),
                    facts=facts_of(storage.store, user, ""),
                    key=key,
                    workspace=Path(team.config.workspace or Path()),
                    notices=tuple(each for each in told if each),
                )


@asynccontextmanager
async def opened_job(path: Path, order: Order, user: str, site: Site) -> AsyncGenerator[Opened]:
    """Open what a conversation about a job needs."""
    spec = read_job_file(path)
    # What needs no key reads no messages either: the rules do.
    model = None if order.model in built_in_models() else order.model
    agent = job_agent(spec, model=model, base_url=order.base_url)
    offers = ", ".join(each.called("en") for each in spec.commands)
    async with opened(site.place) as storage:
        yield Opened(
            client=ClientAgentAdapter(storage, agent, user=user),
            facts=facts_of(storage.store, user, ""),
            key=own_key(),
            workspace=path.parent,
            notices=(f"the job {spec.name}: {offers}; at most {spec.max_turns} turns",),
            job=spec,
        )


async def session_of(asked: str | None, client: ClientAgentAdapter) -> str:
    """The id of the session that was asked for, or a new one."""
    return new_session() if asked is None else await found_session(client, asked)


def new_session() -> str:
    """A new id of a session."""
    return secrets.token_hex(_ID_BYTES)
