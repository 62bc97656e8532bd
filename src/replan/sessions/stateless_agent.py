"""An agent without its own memory: a function of the input and the context."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime
from types import TracebackType
from typing import Any, Self, Unpack

from pydantic import JsonValue

from replan.calling.compiled import Graph, tool_servers_of
from replan.errors import InputError
from replan.events.types import Event
from replan.failures import describe
from replan.ports.agent import TurnOptions, UserInput
from replan.ports.storage import Storage
from replan.runs.service import Runtime
from replan.runs.stopping import GRACE
from replan.runs.travel.portable import PortableRun
from replan.runs.work import Bench
from replan.sessions.beginnings import Beginnings
from replan.sessions.carried import carried_in
from replan.sessions.heard import heard
from replan.sessions.history import whole_summary
from replan.sessions.kept_runs import kept_runs
from replan.sessions.request import Said, read_input
from replan.sessions.run_place import Followed, RunPlaces
from replan.sessions.turn import SUMMARY, Turn
from replan.state.memory import Summary
from replan.state.session.context import AgentContext, AgentResult
from replan.state.session.context_fields import Reading


@dataclass(frozen=True, kw_only=True)
class Workplace:
    """The shared parts of all turns."""

    graph: Graph  # the team's
    places: RunPlaces  # where the runs of a turn are worked on
    clock: Callable[[], datetime]
    new_id: Callable[[], str]  # a new id of a run
    key: bytes | None = None  # signs the runs that contexts carry
    kept_in: Callable[[Storage], Graph]  # the graph of the same team in a storage


class StatelessAgent:
    """An agent that stores nothing between two calls; `build_agent` creates it.

    Any agent of the same team, in any process, can take the next turn of any session. Close it, or
    use it with `async with`, if its team has tool servers.
    """

    def __init__(self, workplace: Workplace) -> None:
        """Prepare; `build_agent` does it."""
        self._workplace = workplace
        self._beginnings = Beginnings()

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
        for server in tool_servers_of(self._workplace.graph).values():
            close = getattr(server, "aclose", None)
            if close is not None:
                await close()

    def kept_in(self, storage: Storage) -> "KeptAgent":
        """Return this agent with the runs of its turns in a storage, for a client.

        A turn with the `run_id` of one that was killed continues it.

        Args:
            storage: The storage of the client's sessions.
        """
        return KeptAgent(self._workplace, storage)

    async def process(
        self,
        user_input: UserInput,
        context: AgentContext | Mapping[str, Any],
        **options: Unpack[TurnOptions],
    ) -> AgentResult:
        """Take one turn of a session. The context stays as it is; the result has the updates.

        While something waits, a text answers the one question that the last result showed, and a
        mapping answers by key. Approvals (of a plan, of a tool call, of work in
        doubt) need the key and the fingerprint. If an answer cannot be read, the question is asked
        again, with the reason.

        Args:
            user_input: A text, content blocks, or answers by key. None continues work that was
                stopped or failed, and shows what waits again.
            context: The session, or a dictionary that `AgentContext.from_dict` reads.
            options: `new_request=True` begins again and abandons what waits. `run_id` names a new
                run. `settings` are the operator's, for the run. `stop` is an `asyncio.Event` that
                stops the work; a later call continues it.

        Returns:
            The result. Errors are results without success; only a cancellation passes through.
        """
        return await self._turn(user_input, context, options, lambda _: None, tokens=False)

    async def stream(
        self,
        user_input: UserInput,
        context: AgentContext | Mapping[str, Any],
        **options: Unpack[TurnOptions],
    ) -> AsyncGenerator[Event | AgentResult]:
        """Take one turn as `process` does; yields its events as they happen, the result last.

        Closing the iterator before its end cancels the turn.
        """
        parts = heard(lambda hear: self._turn(user_input, context, options, hear, tokens=True))
        async with aclosing(parts) as given:
            async for each in given:
                yield each

    async def _turn(
        self,
        user_input: UserInput,
        context: AgentContext | Mapping[str, Any],
        options: TurnOptions,
        hear: Callable[[Event], None],
        *,
        tokens: bool,
    ) -> AgentResult:
        place = self._workplace
        await self._beginnings.turn()
        try:
            # A context is checked where it is made, and nothing here changes what is in it.
            is_read = isinstance(context, AgentContext)
            session = context if is_read else AgentContext.from_dict(context)
            said = read_input(user_input)
            run = carried_in(session, place.key)
            begins_anew = bool(options.get("new_request"))
            _check(said, run, begins_anew=begins_anew)
            turn = Turn(
                clock=place.clock,
                context=session,
                said=said,
                run=run,
                summary=summary_in(session),
                begins_anew=begins_anew,
                run_id=options.get("run_id") or place.new_id(),
                settings=options.get("settings"),
                key=place.key,
                told=hear,
            )
            following = Followed(
                hear=turn.hear,
                hear_again=turn.hear_again,
                tokens=tokens,
                stop=options.get("stop"),
                labels=options.get("labels") or {},
            )
            async with place.places(turn.run_id, following) as here:
                return await turn.result(here)
        except Exception as error:  # noqa: BLE001 - whatever happens is the result's to say
            return AgentResult(success=False, response="", error=describe(error))


class KeptAgent(StatelessAgent):
    """An agent whose runs are in a storage; `StatelessAgent.kept_in` makes it."""

    def __init__(self, workplace: Workplace, storage: Storage) -> None:
        """Prepare; `kept_in` does it."""
        graph = workplace.kept_in(storage)
        self._runtime = Runtime(
            Bench(
                graph=graph,
                storage=storage,
                book=storage.runs,
                clock=workplace.clock,
                new_id=workplace.new_id,
                grace=GRACE,
            )
        )
        places = kept_runs(self._runtime, storage, workplace.clock)
        super().__init__(replace(workplace, graph=graph, places=places))

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


def agent_on(
    runtime: Runtime,
    storage: Storage,
    clock: Callable[[], datetime],
    new_id: Callable[[], str],
) -> StatelessAgent:
    """Return the agent whose runs a runtime works on, such as that of a server."""
    graph = runtime.graph
    places = kept_runs(runtime, storage, clock)
    return StatelessAgent(
        Workplace(graph=graph, places=places, clock=clock, new_id=new_id, kept_in=lambda _: graph)
    )


def _check(said: Said, run: PortableRun | None, *, begins_anew: bool) -> None:
    """Refuse an input that has no meaning now."""
    if begins_anew and said.content is None:
        raise InputError("A new request begins with a text or with content blocks.")
    if run is None and said.is_empty:
        raise InputError("There is nothing to continue. Give a text.")
    if run is None and said.answers is not None:
        raise InputError("Nothing is asked. Give a text, not answers by key.")
    if run is not None and not (run.waits or begins_anew or said.is_empty):
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
    reading = Reading()
    summary = (
        None if written is None else reading.value(Summary, written, ("project_state", SUMMARY))
    )
    reading.end()
    return summary
