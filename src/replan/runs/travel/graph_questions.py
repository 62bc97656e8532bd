"""What the graphs of steps ask by themselves: a run that waits for them stays in its storage.

LangGraph finds such a graph by checkpoints of its own, which no value carries. So a run that waits
for one continues where its checkpoints are, and nowhere else.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import PregelTask, StateSnapshot

from replan.base.errors import InputError
from replan.base.langgraph_inside.tasks import task_around
from replan.runs.asked.asks import seats_of
from replan.runs.calling.compiled import Graph, services_in
from replan.state.person.waiting import asks_of
from replan.state.questions import Question
from replan.state.team import specialist_node

_SPECIALIST = specialist_node("")
_FIX = "Let the step ask with `ask_user`, or keep the run in a storage (ClientAgentAdapter)."


def asked_by_graphs(snapshot: StateSnapshot) -> tuple[Question, ...]:
    """What graphs ask, if nothing else of the round can be done; else nothing."""
    if not all(task.interrupts or task.result is not None for task in snapshot.tasks):
        return ()
    return asks_of(_of_graphs(snapshot), seats_of(snapshot))


async def check_no_graph_waits(snapshot: StateSnapshot, graph: Graph) -> None:
    """Refuse to take a run with a graph in the middle of its work away from its checkpoints.

    Raises:
        InputError: Names the specialist, what the step has done, and the effects of its work.
    """
    task = next((task for task in snapshot.tasks if _asks_by_itself(task)), None)
    if task is None:
        return
    name = task.name.removeprefix(_SPECIALIST)
    card = services_in(graph).specialists[name].card
    effects = card.effects if card.is_declared else f"undeclared, so {card.effects}"
    done = await _nodes_done(snapshot, graph, task.id)
    raise InputError(
        f"The graph of @{name} waits in the middle of its work, by LangGraph's `interrupt`, and "
        f"only a storage can keep where it stands. Done of its step so far: "
        f"{', '.join(done) or 'no node to its end'}. Effects of its work: {effects}. {_FIX}"
    )


def _of_graphs(snapshot: StateSnapshot) -> Sequence[Any]:
    return [one for task in snapshot.tasks if _asks_by_itself(task) for one in task.interrupts]


def _asks_by_itself(task: PregelTask) -> bool:
    return bool(task.interrupts) and task.name.startswith(_SPECIALIST)


async def _nodes_done(snapshot: StateSnapshot, graph: Graph, task_id: str) -> list[str]:
    """The nodes of the graphs inside a task that ran to their end, in the order of their names."""
    saver: BaseCheckpointSaver[Any] = cast("Any", graph).checkpointer
    thread = cast("Mapping[str, Any]", snapshot.config.get("configurable", {}))["thread_id"]
    found = set[str]()
    async for checkpoint in saver.alist({"configurable": {"thread_id": thread}}):
        namespace = str(checkpoint.config.get("configurable", {}).get("checkpoint_ns", ""))
        if task_around(namespace)[1] == task_id:
            found |= checkpoint.checkpoint["versions_seen"].keys()
    return sorted(name for name in found if not name.startswith("__"))
