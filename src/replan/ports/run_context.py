"""What the code that runs here may use: of a call of a graph, a node, a step, a tool, a phase.

LangGraph, LangChain and the code of users stand between who knows these things and who needs them.
So they are in one context variable, which tasks and threads inherit. The variables that are not in
here have another life: the owner of a thread and the ids of checkpoints belong to storage, spans
to OpenTelemetry, the lines of a tool server to its connection.
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeVar

from langchain_core.messages import ToolCall
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from pydantic import JsonValue

from replan.base.declared.part import Effects
from replan.base.langgraph_inside.tasks import inherited_config
from replan.log.events.calls import CallReporter, ToolOutcome, tool_fields
from replan.log.events.emitter import Emitter, RunHooks
from replan.log.events.listeners import Listener, Trace
from replan.log.events.types import BaseEvent, ToolDecision, WarningReported
from replan.log.transcript import Transcript
from replan.plan.model import TaskPlan
from replan.ports.allowance import Held
from replan.ports.steering import Steering
from replan.ports.thread_repository import ThreadRepository
from replan.state.conversation.facts import Facts
from replan.state.enhanced import EnhancedState
from replan.state.limits import RunSettings
from replan.state.questions import Question, QuestionKind
from replan.state.session.session import Session, SessionWork

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Folders:
    """Where the work of a step reads and writes."""

    workspace: Path  # the folder that it may read and write
    out: Path  # the folder for the files that it makes


HERE = Folders(Path(), Path())


class Asks(Protocol):
    """What finds the answers of the step that runs here."""

    path: str
    """The step and the specialist; in a graph that a step runs, after those of that step."""

    def ask(
        self, text: str, kind: QuestionKind, details: JsonValue, *, secret: bool = False
    ) -> JsonValue:
        """Return the answer to a question, or raise `Waiting` if there is none."""
        ...

    def skip(self, number: int) -> None:
        """Count questions that earlier attempts asked, and this one does not ask again."""
        ...

    def remember(self, questions: Iterable[Question]) -> None:
        """Know the answers to the same questions that were asked before this step."""
        ...


class Early(Protocol):
    """The steps that begin before their plan is complete."""

    @property
    def is_at_work(self) -> bool:
        """Whether calls of models may be charged that no node has counted yet."""
        ...

    def hear(
        self,
        state: EnhancedState,
        number: int,
        read: Callable[[str], TaskPlan],
        runtime: Runtime[RunSettings],
        config: RunnableConfig,
    ) -> Callable[[str], None]:
        """Return what takes the complete part of a plan, again and again as it grows."""
        ...

    async def keep(self, plan: TaskPlan, emitter: Emitter) -> None:
        """Cancel the early steps that a finished plan does not hold, and report them."""
        ...


def _outside() -> Any:
    raise RuntimeError("no step of a run is at work here")


# A tuple is changed in a tenth of the time that a dataclass of so many fields takes.
class Context(NamedTuple):
    """What the code that runs here may use; outside a run, almost nothing."""

    # Of a call of a graph.
    trace: Trace | None = None  # what traces it
    listener: Listener | None = None  # hears its events, in place of who reads LangGraph's stream
    # A thread, and a function for the seconds of work on its run so far.
    prior_durations: tuple[str, Callable[[], Mapping[object, float]]] | None = None
    # Who answered, by the keys of the questions, if the caller knows it.
    answered_by: Mapping[str, str] = MappingProxyType({})
    session: Session | None = None  # the session whose turn is taken
    steering: Steering | None = None  # what people ask of the run while it is at work
    work: SessionWork | None = None  # what it keeps of the work of a team's one specialist
    early: Early | None = None  # its steps that began before their plan was complete

    # Of a node.
    run_id: str = ""
    node: str = ""
    emitter: Emitter | None = None
    # The node's configuration, which LangGraph's stream writer looks for.
    config: RunnableConfig = RunnableConfig()
    calls: CallReporter | None = None  # reports calls of models and tools; None if nothing listens

    # Of an attempt of a step, or of the host's answer.
    step_id: int | None = None
    specialist: str = ""
    asker: Asks | None = None
    folders: Folders = HERE
    threads: ThreadRepository | None = None  # where pipelines keep their threads
    thread_id: str = ""  # the thread of the step at its specialist, in its generation
    make_transcript: Callable[[], Transcript] | None = None  # on demand, as few loops need it
    facts: Facts | None = None  # those of the run's user
    is_stopping: Callable[[], bool] = bool  # whether work is to end where it can go on later
    clock: Callable[[], datetime] = _outside
    new_id: Callable[[], str] = _outside
    # The attempts that are left of a model's call that failed before; None: all of its model.
    tries: int | None = None

    # Of what works inside an attempt.
    tool: ToolOutcome | None = None  # the call of a tool that a loop of ours makes, and reports
    permits: tuple[Held, ...] = ()  # of the calls that are made here, the outermost first
    place: str = ""  # the round of a pipeline's thread, for questions
    phase: object = None  # what a phase of a pipeline is given
    turn: object = None  # the turn that a pipeline's graph takes

    def emitter_for(
        self,
        write: Callable[[Any], None],
        hooks: RunHooks,
        run_id: str,
        number: int,
        *,
        keeps_prompts: bool = True,
    ) -> Emitter:
        """An emitter for the events of a round of a run, heard by whoever hears this call."""
        listener = write if self.listener is None else self.listener
        return Emitter(listener, hooks, run_id, number, keeps_prompts, trace=self.trace)

    def report(self, kind: type[BaseEvent], **fields: Any) -> None:
        """Report an event of the node that works here, whatever runs in it."""
        if self.emitter is None:
            return
        token = inherited_config.set(self.config)
        try:
            self.emitter.stream(kind, **fields)
        finally:
            inherited_config.reset(token)

    def warn(self, text: str) -> None:
        """Report what a person may not expect of the node that works here."""
        self.report(WarningReported, text=text)

    @property
    def transcript(self) -> Transcript:
        """The record of the loop that runs here."""
        if self.make_transcript is None:
            return _outside()
        return self.make_transcript()


_current: ContextVar[Context | None] = ContextVar("replan_context", default=None)
_NOWHERE = Context()


class _Entered:
    """A context as a block; cheaper than a generator."""

    __slots__ = ("_context", "_token")

    def __init__(self, context: Context) -> None:
        self._context = context
        self._token: Token[Context | None] | None = None

    def __enter__(self) -> None:
        self._token = _current.set(self._context)

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _current.reset(self._token)


def here() -> Context:
    """Return what the code that runs here may use."""
    return _current.get() or _NOWHERE


def using(**changes: Any) -> _Entered:
    """Change what the code of a block may use, by the fields of `Context`."""
    return _Entered(here()._replace(**changes))


def use(**changes: Any) -> None:
    """Change it for the rest of a task: its context ends with it."""
    _current.set(here()._replace(**changes))


def folders_of_step() -> Folders:
    """Return the folders of the step that is being done; outside one, the working directory."""
    return here().folders


@contextmanager
def reported_tool_call(
    call: str, called: ToolCall, effects: Effects, approval: ToolDecision | None
) -> Generator[ToolOutcome]:
    """Report a tool's call that is made inside, if something listens."""
    calls = here().calls
    if calls is None:
        yield ToolOutcome()
        return
    about = tool_fields(call, called["name"], called["args"], effects, approval, called["id"])
    outcome = ToolOutcome(awaited=(calls, called["name"]))
    calls.tool_begins(about)
    try:
        with using(tool=outcome):
            yield outcome
    except BaseException as error:
        outcome.broke_off(error)
        raise
    finally:
        calls.tool_ends(about, outcome)
