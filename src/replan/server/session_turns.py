"""Turns of sessions, charged to the caller; a caller that leaves does not end one."""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any, Unpack

from replan.base.errors import ReplanError
from replan.log.events.types import Event
from replan.log.labels import TEAM, TOKEN
from replan.ports.agent import TurnOptions, UserInput
from replan.ports.storage import Storage
from replan.runs.work_stream import stream_of
from replan.server.callers.allowances import Lease
from replan.server.callers.identity import Identity
from replan.server.problems import bad_field
from replan.server.served_teams import ServedTeams
from replan.server.work import reserve_for, reserve_new, settings_for
from replan.sessions.client.adapter import ClientAgentAdapter
from replan.sessions.session_runs import run_in
from replan.sessions.stateless_agent import KeptAgent
from replan.state.limits import RunSettings
from replan.state.session.context import AgentResult

TurnPart = Event | AgentResult | ReplanError
"""The stream of a turn: its events, and at the end its result, or why there is none."""


@dataclass(frozen=True, kw_only=True)
class PayingAgent:
    """The agent of a team, charged to a caller: it reserves before a run works."""

    served: ServedTeams
    who: Identity
    team: str
    agent: KeptAgent
    settings: RunSettings | None  # what was asked for

    def kept_in(self, _: Storage) -> "PayingAgent":
        """Its runs are in the storage of the served teams."""
        return self

    async def process(
        self, user_input: UserInput, context: Any, **options: Unpack[TurnOptions]
    ) -> AgentResult:
        """Reserve for the run of a turn, take the turn, and settle when the run rests."""
        carried = "" if options.get("new_request") else run_in(context)
        lease, settings = await self._lease_for(carried or str(options.get("run_id")))
        labels = {TEAM: self.team, TOKEN: self.who.name}
        charged: TurnOptions = {**options, "labels": {**options.get("labels", {}), **labels}}
        # Those of the client have what is of the session; here the token and the team say it.
        charged["settings"] = settings
        try:
            return await self.agent.process(user_input, context, **charged)
        finally:
            await self.served.settle_at_rest(lease)

    async def _lease_for(self, run_id: str) -> tuple[Lease, RunSettings | None]:
        """Reserve for the run of a turn: a new one, or the one that is open in the session."""
        settings = settings_for(self.served, self.who, self.team, self.settings)
        self.served.check_can_work(self.team)
        record = await self.served.storage.runs.get(run_id)
        if record is None:
            return await reserve_new(self.served, self.who, self.team, run_id, settings)
        team = record.labels.get(TEAM, "")
        if team != self.team:
            fix = f"Give '{team}', or start again with new_request."
            raise bad_field("team", self.team, "another team works on what is open here", fix)
        return await reserve_for(self.served, self.who, record, settings)


def client_of(
    served: ServedTeams, who: Identity, team: str, settings: RunSettings | None = None
) -> ClientAgentAdapter:
    """The client for a caller's sessions, whose turns a team takes."""
    agent = KeptAgent(served.runtimes[team])
    paying = PayingAgent(served=served, who=who, team=team, agent=agent, settings=settings)
    return ClientAgentAdapter(
        served.storage,
        paying,
        tenant=who.tenant,
        user=who.person,
        clock=served.clock,
        new_id=served.new_id,
    )


def turn_parts(
    served: ServedTeams,
    client: ClientAgentAdapter,
    session_id: str,
    user_input: UserInput,
    *,
    has_events: bool,
    **options: Any,
) -> AsyncGenerator[TurnPart]:
    """Take a turn independently of the caller, and yield its events, if wanted, its result last.

    A client that disconnects does not stop the turn; sent again with its `turn_id`, it returns its
    result.
    """

    async def take(report: Callable[[Event], None]) -> AgentResult | ReplanError:
        try:
            on_event = report if has_events else None
            result = await client.process(session_id, user_input, on_event=on_event, **options)
        except ReplanError as error:
            return error
        # The session is stored here, so no client has to apply updates.
        return result.replace(context_updates={})

    return stream_of(take, served.turns)
