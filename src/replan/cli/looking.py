"""Look at kept runs without what it takes to run them: no team file, no model, no key."""

from dataclasses import dataclass
from typing import Any, cast

from langchain_core.language_models import FakeListChatModel
from langgraph.types import StateSnapshot

from replan.assembly import Graph, build_graph
from replan.cli.holding import is_held
from replan.cli.past import plan_as_it_is, results_on_record
from replan.cli.questions import Ask, open_asks
from replan.plan.model import StepStatus, TaskPlan
from replan.ports.run_book import RunRecord
from replan.ports.storage import Storage
from replan.state.enhanced import EnhancedState
from replan.team.specialist import Specialist
from replan.team.team import Team

_SETTLED = (StepStatus.COMPLETED, StepStatus.SKIPPED)


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What is kept of a run.

    Attributes:
        record: Its entry in the book.
        state: Its state; empty if it was killed before it had one.
        plan: Its plan, with the marks of all that is finished, and its history.
        asks: What it waits for.
    """

    record: RunRecord
    state: EnhancedState
    plan: TaskPlan | None = None
    asks: tuple[Ask, ...] = ()

    @property
    def outcome(self) -> str:
        """How it stands; a process that was killed at the wrong moment could not say so."""
        if self.state.get("is_completed") and (ended := self.state.get("outcome")):
            return ended
        if self.record.outcome != "running":
            return self.record.outcome
        return "running" if is_held(self.record.run_id) else "interrupted"

    @property
    def progress(self) -> tuple[int, int]:
        """Steps that are done, and all steps."""
        steps = self.plan.steps if self.plan else ()
        return sum(step.status in _SETTLED for step in steps), len(steps)


def viewer(storage: Storage) -> Graph:
    """Give a graph that can read every run's state, and run none."""
    return build_graph(_NOBODY, storage=storage)


async def seen(graph: Graph, storage: Storage, record: RunRecord) -> Seen:
    """Look at a run.

    Args:
        graph: From `viewer`.
        storage: Where it is kept.
        record: Its entry in the book.

    Raises:
        StorageError: What is kept cannot be read.
    """
    config = {"configurable": {"thread_id": record.thread_id}}
    snapshot: StateSnapshot = await cast("Any", graph).aget_state(config)
    state = cast("EnhancedState", snapshot.values)
    # A run that is over has everything in its state.
    is_over = state.get("is_completed")
    results = [] if is_over else await results_on_record(state, storage.journal)
    plan = plan_as_it_is(state, results)
    asks = () if is_over else await open_asks(snapshot, storage.journal)
    return Seen(record=record, state=state, plan=plan, asks=asks)


def _nothing(_: object) -> str:
    return ""


_NOBODY = Team(
    FakeListChatModel(responses=[]), [Specialist("nobody", "Does nothing.", run=_nothing)]
)
