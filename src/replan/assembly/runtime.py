"""The doors to runs in Python: `run`, `run_sync`, `stream`, and `open_runtime` for more."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    aclosing,
    asynccontextmanager,
    nullcontext,
)
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Unpack, cast, overload

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict

from replan.assembly.environment import now, random_id
from replan.assembly.graphs import AnyTeam, Graph, graph_of, with_output_type
from replan.base.errors import ConfigurationError
from replan.base.langgraph_inside.tasks import without_tokens
from replan.base.own_loop import Portal, run_in_own_loop
from replan.log.events.types import Event
from replan.log.whole_results import whole_values
from replan.ports.storage import Storage
from replan.ports.tool_provider import ToolProvider, close_connections
from replan.runs.calling.compiled import services_in, shapes_of, tool_servers_of
from replan.runs.calling.given_input import Input, checked_run_id, read_settings
from replan.runs.calling.new_or_continued import Call
from replan.runs.result import RunResult, T, result_of
from replan.runs.running import run_graph, stream_graph
from replan.runs.stopping import GRACE
from replan.state.limits import RunSettings

if TYPE_CHECKING:
    from replan.runs.service import Runtime
    from replan.runs.synchronous import SyncRuntime


class RuntimeOptions(TypedDict, total=False):
    """The options of `open_runtime` beside the type of the answers."""

    storage: Storage | str | Path | None
    clock: Callable[[], datetime] | None
    new_id: Callable[[], str] | None
    grace: float
    on_event: Callable[[Event], None] | None


class SyncOptions(TypedDict, total=False):
    """The options of `run_sync` beside the type of the answer."""

    settings: RunSettings | None
    config: RunnableConfig | None
    run_id: str | None


class RunOptions(SyncOptions, total=False):
    """The options of `run` beside the type of the answer."""

    stop: asyncio.Event | None
    grace: float


# A type checker knows what a class makes; of a union or an alias it knows less.
@overload
def open_runtime(
    team: AnyTeam, *, output_type: type[T], **options: Unpack[RuntimeOptions]
) -> "Opening[T]": ...
@overload
def open_runtime(
    team: AnyTeam, *, output_type: Any | None = None, **options: Unpack[RuntimeOptions]
) -> "Opening[Any]": ...
def open_runtime(  # noqa: PLR0913 - what a runtime can be told
    team: AnyTeam,
    *,
    storage: Storage | str | Path | None = None,
    clock: Callable[[], datetime] | None = None,
    new_id: Callable[[], str] | None = None,
    grace: float = GRACE,
    on_event: Callable[[Event], None] | None = None,
    output_type: Any | None = None,
) -> "Opening[Any]":
    """Open a runtime for the runs of a team, with `async with` or, in synchronous code, `with`.

    When you leave the block, running runs are stopped, so that they can be resumed, and everything
    that was opened is closed.

    Args:
        team: A team, a graph from `build_graph` (with the storage that it was built with), or the
            path of a team file.
        storage: A storage from `open_storage`, or its argument. None keeps nothing: runs cannot be
            resumed, and do not wait for a person.
        clock: Returns the time of records, events, attempts and plans, with a time zone. A
            graph has its own for attempts and plans: the `clock` of `build_graph`.
        new_id: Returns a new id for a run.
        grace: Seconds that running steps have to end when a run is stopped.
        on_event: Called with each event of every run once it is on record, to count or to send
            them. It may not raise.
        output_type: The type of the answers, as in `Host`; the value is the `output` of a result.

    Raises:
        ConfigurationError: The graph of the team was built without storage, and storage is given;
            or an output type is given for a graph or a team file.
    """
    team = with_output_type(team, output_type)
    clock, new_id = clock or now, new_id or random_id
    return Opening(lambda: _opened(team, storage, clock, new_id, grace, on_event))


class Opening(Generic[T]):
    """A runtime before it is opened: `async with` gives a `Runtime`, `with` a `SyncRuntime`."""

    def __init__(self, opened: Callable[[], "AbstractAsyncContextManager[Runtime[T]]"]) -> None:
        self._opened = opened
        self._exits = AsyncExitStack()
        self._portal: Portal | None = None

    def __getattr__(self, name: str) -> Any:
        fix = "with open_runtime(...) as runtime: runtime.run(...)"
        raise AttributeError(f"This runtime is not open, so it has no '{name}'. Write {fix}.")

    async def __aenter__(self) -> "Runtime[T]":
        return await self._exits.enter_async_context(self._opened())

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._exits.__aexit__(kind, error, traceback)

    def __enter__(self) -> "SyncRuntime[T]":
        from replan.runs.synchronous import SyncRuntime  # noqa: PLC0415 - `run_sync` needs none

        self._portal = Portal()
        try:
            return SyncRuntime(self._portal.enter(self._opened()), self._portal)
        except BaseException:
            self._portal.close()
            raise

    def __exit__(self, *_: object) -> None:
        if self._portal is not None:
            self._portal.close()


@asynccontextmanager
async def _opened(
    team: AnyTeam,
    storage: Storage | str | Path | None,
    clock: Callable[[], datetime],
    new_id: Callable[[], str],
    grace: float,
    on_event: Callable[[Event], None] | None,
) -> "AsyncGenerator[Runtime[Any]]":
    # What `run` and `run_sync` do without is loaded when a runtime is opened.
    from replan.runs.run_at_work import Resources  # noqa: PLC0415
    from replan.runs.service import Runtime  # noqa: PLC0415
    from replan.runs.team_on_record import identity_of  # noqa: PLC0415
    from replan.storage.memory import memory_runs  # noqa: PLC0415

    async with AsyncExitStack() as stack:
        if isinstance(storage, str | Path):
            from replan.storage.opening import open_storage  # noqa: PLC0415 - as above

            storage = await stack.enter_async_context(open_storage(storage))
        if not isinstance(cast("object", storage), Storage | None):
            fix = "Give a path, ':memory:', a postgresql:// address, or what open_storage opens."
            raise ConfigurationError("storage", storage, "this is no storage", fix)
        check_kept("team", team, storage)
        kept = storage or memory_runs()
        graph = graph_of(team, storage, clock=clock)
        resources = Resources(
            graph=graph,
            team=identity_of(graph),
            storage=storage,
            runs=kept.runs,
            log=kept.log,
            clock=clock,
            new_id=new_id,
            grace=grace,
            on_event=on_event,
        )
        await stack.enter_async_context(open_tools(resources.graph))
        runtime = Runtime(resources)
        stack.push_async_callback(runtime.close)
        yield runtime


def check_kept(field: str, team: AnyTeam, storage: Storage | None) -> None:
    """Refuse a graph that keeps nothing where runs are to be kept: none of them could continue.

    Raises:
        ConfigurationError: The graph was built without storage.
    """
    if storage is None or not isinstance(team, CompiledStateGraph):
        return
    if cast("Any", team).checkpointer:
        return
    problem = "This graph was built without storage, so its runs could not be answered or resumed"
    fix = "Give the team itself, or build_graph(team, storage=storage) with the same storage."
    raise ConfigurationError(field, team.name, problem, fix)


@asynccontextmanager
async def open_tools(graph: Graph) -> AsyncGenerator[Mapping[str, ToolProvider]]:
    """Close the tool servers of a graph at the end; each is opened when it is first needed.

    For callers of a graph from `build_graph` by its own methods; `run` with a team, and
    `open_runtime`, do it themselves. It yields the servers by their names.

    Args:
        graph: The graph of a team.
    """
    servers = tool_servers_of(graph)
    try:
        yield servers
    finally:
        await close_connections(servers.values())


@overload
async def run(
    team: AnyTeam,
    input: Input,
    *,
    output_type: type[T],
    **options: Unpack[RunOptions],
) -> RunResult[T]: ...
@overload
async def run(
    team: AnyTeam,
    input: Input,
    *,
    output_type: Any | None = None,
    **options: Unpack[RunOptions],
) -> RunResult[Any]: ...
async def run(  # noqa: PLR0913 - what a run can be told
    team: AnyTeam,
    input: Input,  # noqa: A002 - LangGraph calls it so
    *,
    settings: RunSettings | None = None,
    config: RunnableConfig | None = None,
    run_id: str | None = None,
    output_type: Any | None = None,
    stop: asyncio.Event | None = None,
    grace: float = GRACE,
) -> RunResult[Any]:
    """Run a team on a request, and return the result of the run.

    A run that waits for a person has the outcome `waiting`. Continue it with `Command(resume=...)`
    as the input. A run that was stopped has the outcome `interrupted`. Continue it with `None` as
    the input, if the graph has a checkpointer. `open_runtime` makes both simpler.

    Args:
        team: A team, a graph from `build_graph`, or the path of a team file.
        input: The request as a text, or a mapping with `messages` and optionally `plan`.
        settings: The settings of this run. Fields that are not set keep the graph's configuration,
            or the run's own settings if it is resumed; a resumed run can so get other limits.
        config: LangChain's configuration; `configurable` contains the id of the thread.
        run_id: The id of the run; by default a new one. The same input under the same id on the
            same thread continues the run instead of starting it again.
        output_type: The type of the answer, as in `Host`; the value is the result's `output`.
        stop: An event that stops the run: no new step starts, and the state is saved.
        grace: Seconds that running steps have to end after a stop before they are cancelled.

    Raises:
        UsageError: The input cannot be used, or another run works on the thread.
        ModelCallError: The thinking or planning model could not be reached.
    """
    began = time.monotonic()
    call = Call(input, read_settings(settings), config or {}, checked_run_id(run_id))
    graph = graph_of(with_output_type(team, output_type))
    # Other calls of a graph that was given may need its servers.
    async with nullcontext() if graph is team else open_tools(graph):
        state = await run_graph(graph, call, stop=stop, grace=grace)
        services = services_in(graph)
        state = state if services is None else await whole_values(state, services.log)
    return result_of(state, time.monotonic() - began, shapes_of(graph))


@overload
def run_sync(
    team: AnyTeam,
    input: Input,
    *,
    output_type: type[T],
    **options: Unpack[SyncOptions],
) -> RunResult[T]: ...
@overload
def run_sync(
    team: AnyTeam,
    input: Input,
    *,
    output_type: Any | None = None,
    **options: Unpack[SyncOptions],
) -> RunResult[Any]: ...
def run_sync(
    team: AnyTeam,
    input: Input,  # noqa: A002 - LangGraph calls it so
    *,
    settings: RunSettings | None = None,
    config: RunnableConfig | None = None,
    run_id: str | None = None,
    output_type: Any | None = None,
) -> RunResult[Any]:
    """Run a team from synchronous code; see `run`.

    Raises:
        RuntimeError: An event loop is running; await `run` there.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise RuntimeError("An event loop is running: use `await replan.run(...)` here.")
    options: Any = {"run_id": run_id, "settings": settings, "config": config}

    async def work() -> RunResult[Any]:
        graph = graph_of(with_output_type(team, output_type))
        # The loop ends with the run, and with it what was opened in it.
        async with open_tools(graph):
            return await run(graph, input, **options)

    return run_in_own_loop(work)


def stream(  # noqa: PLR0913 - what a run can be told
    team: AnyTeam,
    input: Input,  # noqa: A002 - LangGraph calls it so
    *,
    settings: RunSettings | None = None,
    config: RunnableConfig | None = None,
    run_id: str | None = None,
    output_type: Any | None = None,
    stop: asyncio.Event | None = None,
    grace: float = GRACE,
    tokens: bool = True,
) -> AsyncIterator[Event]:
    """Run a team and yield its events as they happen. Closing the iterator cancels the run.

    Setting `stop` ends the events early; see `run`. With an `output_type`, the last event has the
    answer as JSON of this type, as its `output`. With `tokens=False` replies are requested as a
    whole, which takes a fraction of the CPU, and each answer is one `answer_token`.

    Raises:
        UsageError: The input cannot be used, or another run works on the thread.
        ModelCallError: The thinking or planning model could not be reached.
    """
    config = (config or {}) if tokens else without_tokens(config or {})
    call = Call(input, read_settings(settings), config, checked_run_id(run_id))
    graph = graph_of(with_output_type(team, output_type))
    events = stream_graph(graph, call, stop=stop, grace=grace)
    return events if graph is team else _closing(graph, events)


async def _closing(graph: Graph, events: AsyncIterator[Event]) -> AsyncGenerator[Event]:
    async with open_tools(graph), aclosing(cast("AsyncGenerator[Event]", events)):
        async for event in events:
            yield event
