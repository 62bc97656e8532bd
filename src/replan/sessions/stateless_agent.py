"""An agent without its own memory: a function of the input and the context."""

import asyncio
from asyncio import AbstractEventLoop
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Any, Self, Unpack, cast
from weakref import WeakKeyDictionary

from pydantic import JsonValue

from replan.base.errors import InputError
from replan.base.failures import describe
from replan.base.langgraph_inside.graphs import declares_interrupts
from replan.log.events.types import Event
from replan.ports.agent import TurnOptions, UserInput
from replan.ports.storage import Storage
from replan.ports.tool_provider import close_connections
from replan.runs.calling.compiled import Graph, services_in, tool_servers_of
from replan.runs.run_at_work import Resources
from replan.runs.service import Runtime
from replan.runs.stopping import GRACE
from replan.runs.team_on_record import identity_of
from replan.runs.travel.portable import PortableRun
from replan.runs.work_stream import stream_of
from replan.sessions.carried_run import RunCarrier, within_team
from replan.sessions.history import whole_summary
from replan.sessions.request import UserMessage, read_input
from replan.sessions.run_place import Followed, RunPlaces, storage_places
from replan.sessions.session_work import JobWork, KeptWork, ThreadWork
from replan.sessions.turn import SUMMARY, Turn
from replan.specialists.job import JobSpecialist
from replan.specialists.pipeline import PipelineSpecialist
from replan.specialists.services import Services
from replan.state.options import Summary
from replan.state.session.context import AgentContext, AgentResult
from replan.state.session.context_fields import ValueReader, is_large

_beginnings: WeakKeyDictionary[AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


@dataclass(frozen=True, kw_only=True)
class Workplace:
    """The shared parts of all turns."""

    graph: Graph  # the team's
    places: RunPlaces  # where the runs of a turn are worked on
    clock: Callable[[], datetime]
    new_id: Callable[[], str]  # a new id of a run
    carrier: RunCarrier = field(default_factory=RunCarrier)  # of the runs in contexts
    # The graph of the same team in a storage; None if its runs are in one.
    graph_in: Callable[[Storage], Graph] | None = None
    refusal: str = ""  # why no turn can be taken, if so
    stays: bool = False  # whether contexts stay in the storage of their runs


class StatelessAgent:
    """An agent that stores nothing between two calls; `build_agent` creates it.

    Any agent of the same team, in any process, can take the next turn of any session. Close it, or
    use it with `async with`, if its team has tool servers.

    The input of a turn is a text, content blocks, or answers by key. None continues work that was
    stopped or failed, and shows what waits again. While something waits, a text answers the one
    question that the last result showed, and a mapping answers by key. Approvals (of a plan, of a
    tool call, of work in doubt) need the key and the fingerprint. If an answer cannot be read, the
    question is asked again, with the reason.

    Of the options, `new_request=True` begins again and abandons what waits. `run_id` names a new
    run. `settings` are the operator's, for the run. `stop` is an `asyncio.Event` that stops the
    work; a later call continues it. `on_event` is called with each event as it happens.
    """

    def __init__(self, workplace: Workplace) -> None:
        """Prepare; `build_agent` does it."""
        self._workplace = workplace

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the tool servers of the team."""
        await close_connections(tool_servers_of(self._workplace.graph).values())

    def kept_in(self, storage: Storage) -> "KeptAgent":
        """Return this agent with the runs of its turns in a storage, for a client.

        A turn with the `run_id` of one that was killed continues it.

        Args:
            storage: The storage of the client's sessions.
        """
        place = self._workplace
        if place.graph_in is None:
            return cast("KeptAgent", self)
        graph = place.graph_in(storage)
        resources = Resources(
            graph=graph,
            team=identity_of(graph),
            storage=storage,
            runs=storage.runs,
            log=storage.log,
            clock=place.clock,
            new_id=place.new_id,
            grace=GRACE,
        )
        return KeptAgent(Runtime(resources), place.carrier)

    async def process(
        self,
        user_input: UserInput,
        context: AgentContext | Mapping[str, Any],
        **options: Unpack[TurnOptions],
    ) -> AgentResult:
        """Take one turn of a session. The context stays as it is; the result has the updates.

        Args:
            user_input: What the user says, in a form that the agent takes.
            context: The session, or a dictionary that `AgentContext.from_dict` reads.
            options: Those that the agent takes.

        Returns:
            The result. Errors are results without success; only a cancellation passes through.
        """
        await _begin()
        try:
            # A context is checked where it is made, and nothing here changes what is in it.
            is_read = isinstance(context, AgentContext)
            session = context if is_read else await read_context(context)
            return await self._turn(read_input(user_input), session, options)
        except Exception as error:  # noqa: BLE001 - whatever happens is the result's to say
            return AgentResult(success=False, response="", error=describe(error))

    def stream(
        self,
        user_input: UserInput,
        context: AgentContext | Mapping[str, Any],
        **options: Unpack[TurnOptions],
    ) -> AsyncGenerator[Event | AgentResult]:
        """Take one turn as `process` does; yields its events as they happen, the result last.

        Closing the iterator before its end cancels the turn.
        """

        def process(report: Callable[[Event], None]) -> Coroutine[Any, Any, AgentResult]:
            return self.process(user_input, context, **{**options, "on_event": report})

        return stream_of(process)

    async def _turn(
        self, message: UserMessage, session: AgentContext, options: TurnOptions
    ) -> AgentResult:
        place = self._workplace
        if place.refusal:
            raise InputError(place.refusal)
        run, settings = place.carrier.carried(session), options.get("settings")
        if run is not None and place.carrier.key is None:
            run = within_team(run, services_in(place.graph), settings)
        begins_anew = bool(options.get("new_request"))
        work = _kept_work(services_in(place.graph), place.carrier, stays=place.stays)
        if run is None and message.is_empty and work is not None and work.is_unfinished(session):
            begins_anew = False
        else:
            _check(message, run, begins_anew=begins_anew)
        turn = Turn(
            clock=place.clock,
            context=session,
            message=message,
            run=run,
            summary=summary_in(session),
            begins_anew=begins_anew,
            run_id=options.get("run_id") or place.new_id(),
            settings=settings,
            carrier=place.carrier,
            work=work,
            listener=options.get("on_event"),
        )
        following = Followed(
            report=turn.report,
            report_again=turn.report_again,
            tokens=options.get("on_event") is not None,
            stop=options.get("stop"),
            labels=options.get("labels") or {},
        )
        async with place.places(turn.run_id, following) as here:
            return await turn.result(here)


class KeptAgent(StatelessAgent):
    """An agent whose runs are those of a runtime, in its storage."""

    def __init__(self, runtime: Runtime, carrier: RunCarrier | None = None) -> None:
        """Prepare; `StatelessAgent.kept_in` does it."""
        self._runtime = runtime
        super().__init__(
            Workplace(
                graph=runtime.graph,
                places=storage_places(runtime),
                clock=runtime.resources.clock,
                new_id=runtime.resources.new_id,
                carrier=carrier or RunCarrier(),
                stays=True,
            )
        )

    async def sum_up(self, run_id: str, context: AgentContext) -> dict[str, JsonValue]:
        """Write the summary that is due after an answer, and return its changes.

        Args:
            run_id: The run that gave the answer.
            context: The session before the turn.

        Raises:
            ReplanError: The storage cannot be used, or another process works on the run.
        """
        state = (await self._runtime.resume(run_id)).state
        summary = whole_summary(context.dialogue_history, state.get("memory_summary"))
        if summary is None:
            return {}
        return {"project_state": {SUMMARY: {"set": summary.model_dump(mode="json")}}}


def _kept_work(services: Services, carrier: RunCarrier, *, stays: bool) -> KeptWork | None:
    """What keeps the work of a team in its sessions, if its one specialist goes on with it.

    Args:
        services: Those of the team.
        carrier: Has the key of its sessions.
        stays: Whether contexts stay in the storage of their runs, which any process reads.
    """
    if not services.is_direct:
        return None
    match services.specialists[services.names[0]]:
        case PipelineSpecialist():
            return ThreadWork()
        case JobSpecialist() as job:
            return JobWork(job.spec, carrier, stays)
        case _:
            return None


def refusal_of(services: Services) -> str:
    """Why a team takes no turns without a storage; empty if it does."""
    for name, specialist in services.specialists.items():
        if declares_interrupts(getattr(specialist, "graph", None)):
            return (
                f"The graph of @{name} is compiled with interrupt_before or interrupt_after, and "
                "no context can carry where it stands. Keep its runs in a storage "
                "(ClientAgentAdapter), or let its nodes ask with `ask_user`."
            )
    return ""


async def read_context(data: Mapping[str, Any]) -> AgentContext:
    """Read a context, a large one in a thread: the event loop stays free.

    Raises:
        ContextError: Something is wrong; names every bad field.
    """
    if is_large(data):
        return await asyncio.to_thread(AgentContext.from_dict, data)
    return AgentContext.from_dict(data)


async def _begin() -> None:
    """Let turns begin in the order of their arrival, one in each cycle of the event loop."""
    # Each time a loop comes round it does all that can be done: of a thousand turns that began
    # together, a thousand first parts, before anything else.
    async with _beginnings.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
        await asyncio.sleep(0)


def _check(message: UserMessage, run: PortableRun | None, *, begins_anew: bool) -> None:
    """Refuse an input that has no meaning now."""
    if begins_anew and message.content is None:
        raise InputError("A new request begins with a text or with content blocks.")
    if run is None and message.is_empty:
        raise InputError("There is nothing to continue. Give a text.")
    if run is None and message.answers is not None:
        raise InputError("Nothing is asked. Give a text, not answers by key.")
    if run is not None and not (run.waits or begins_anew or message.is_empty):
        raise InputError(
            "Earlier work of this session was stopped, or failed. Continue it with the input None, "
            "or give it up with new_request=True."
        )


def summary_in(context: AgentContext) -> Summary | None:
    """The summary that a context carries.

    Raises:
        ContextError: It cannot be used.
    """
    written = context.project_state.get(SUMMARY)
    reading = ValueReader()
    summary = (
        None if written is None else reading.value(Summary, written, ("project_state", SUMMARY))
    )
    reading.end()
    return summary
