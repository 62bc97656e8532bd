"""A run that waits or was stopped, as a value that travels: another process continues it.

It has what a resume needs: the newest state, the results that are still used, the open questions,
the keys of done effects, and what was spent; not the history. So the run that continues elsewhere
is the same run: its steps have the same keys, and no reply on record is requested again.
"""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, Literal, Self, cast, get_args

from langgraph.types import Command, Overwrite, StateSnapshot
from pydantic import Field, JsonValue

from replan.base.errors import InputError, ThreadBusyError
from replan.base.values import Value, fields_in, restored_strictly
from replan.log.labels import checked_labels
from replan.log.run_log import RunLog, RunRows
from replan.log.whole_results import whole_values
from replan.plan.model import TaskPlan
from replan.ports.run_book import RunRecord
from replan.ports.storage import Storage
from replan.ports.thread_repository import ThreadRepository
from replan.runs.calling.barred import BARRED, bar
from replan.runs.calling.compiled import Graph, services_in
from replan.runs.calling.team_graph import TeamGraph, alone
from replan.runs.reads import is_worked_on, kept_record_of
from replan.runs.reports import config_of, snapshot_of
from replan.runs.run_at_work import Resources
from replan.runs.run_input import title_of
from replan.runs.team_on_record import team_for, with_team
from replan.runs.travel.graph_questions import (
    asked_by_graphs,
    check_no_graph_waits,
)
from replan.runs.travel.portable_json import (
    HISTORIES,
    check_notes,
    check_questions,
    plain_keys,
    state_as_json,
    state_in,
)
from replan.specialists.steps.board import QUESTIONS
from replan.state.enhanced import EnhancedState
from replan.state.questions import Question
from replan.state.session.context_fields import Path, ValueReader
from replan.state.team import specialist_node

FORMAT = 1  # The newest format of a run that travels. A newer one is refused.

Node = Literal[
    "think",
    "direct_answer",
    "plan_creation",
    "plan_approval",
    "plan_execution",
    "user_input",
    "specialist",
    "result_collector",
    "feedback",
    "plan_update",
    "final_answer",
]
"""What a run continues with; `specialist` means the steps of a round."""

_ENDING = "final_answer"  # A node behind which there is no branch.
_SPECIALIST = specialist_node("")
_STEPS = "specialist"
_RESTING = ("user_input", "plan_approval")
_WITHOUT_PLAN = ("think", "direct_answer", "plan_creation")
_FIX = "Send the run as it was."
_OF_A_ROUND = {"current_collected_results", "current_execution", "current_feedback_result"}


class PortableRun(Value):
    """A run at rest, which another process can continue.

    Attributes:
        run_id: The run.
        next: The node that it continues with.
        state: Its state, by the keys of `EnhancedState`.
        rows: Its rows of the log.
        threads: The rows of its pipelines' threads, by thread.
        asked: What LangGraph graphs of its steps ask, if it waits for them. Where they stand is
            in its storage only.
    """

    run_id: str
    next: Node
    state: dict[str, Any]
    rows: RunRows
    threads: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)
    asked: tuple[Question, ...] = ()

    @property
    def waits(self) -> bool:
        """Whether it waits for a person, and nothing else can be done."""
        return self.next in _RESTING or bool(self.asked)

    def to_json(self) -> dict[str, JsonValue]:
        """Return the run as JSON."""
        rows = self.rows.model_dump(mode="json", exclude_defaults=True)
        asked: list[JsonValue] = [
            question.model_dump(mode="json", exclude_defaults=True) for question in self.asked
        ]
        return {
            "format": FORMAT,
            "run_id": self.run_id,
            "next": self.next,
            "state": cast("JsonValue", state_as_json(self.state, rows.get("results", {}))),
            "rows": rows,
            **({"threads": cast("JsonValue", self.threads)} if self.threads else {}),
            **({"asked": asked} if asked else {}),
        }

    @classmethod
    def of_json(cls, data: object, path: Path = ()) -> Self:
        """Read a run; every part of it is checked.

        Args:
            data: The JSON from `to_json`.
            path: Where it is, for errors.

        Raises:
            ContextError: Something is wrong; names every bad field.
        """
        reading = ValueReader()
        written = reading.value(_Written, data, path)
        reading.end()
        rows: RunRows | None = reading.value(
            RunRows, written.rows, (*path, "rows"), restored_strictly, is_copied=True
        )
        check_notes(rows or RunRows(), (*path, "rows", "notes"), reading)
        recorded = fields_in(written.rows.get("results"))
        state = state_in(written.state, recorded, (*path, "state"), reading)
        if written.state.get("run_id") != written.run_id:
            problem = "it is not the run's own"
            reading.refuse((*path, "state", "run_id"), state.get("run_id"), problem, _FIX)
        reading.end()
        _check_plan(state.get("current_plan"), written.next, (*path, "state"), reading)
        check_questions(state.get("questions", {}), (*path, "state", "questions"), reading)
        reading.end()
        return cls(
            run_id=written.run_id,
            next=written.next,
            state=state,
            rows=rows or RunRows(),
            threads=written.threads,
            asked=written.asked,
        )


class _Written(Value):
    """A run as JSON, before its parts are read."""

    format: int = Field(strict=True, ge=FORMAT, le=FORMAT)
    run_id: str = Field(min_length=1)
    next: Node
    state: dict[str, JsonValue]
    rows: dict[str, JsonValue]
    threads: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)
    asked: tuple[Question, ...] = ()


def _check_plan(plan: TaskPlan | None, node: str, path: Path, reading: ValueReader) -> None:
    """Keep it as a mistake if there is no plan to continue with, or its steps have one id twice."""
    if plan is None and node not in _WITHOUT_PLAN:
        reading.refuse((*path, "current_plan"), None, "it is missing", _FIX)
    elif plan is not None and len(plan.by_id) < plan.total_steps:
        ids = [step.id for step in plan.steps]
        reading.refuse((*path, "current_plan", "steps"), ids, "two steps have one id", _FIX)


async def portable_run(
    snapshot: StateSnapshot,
    graph: Graph,
    log: RunLog,
    threads: ThreadRepository,
    *,
    stays: bool = False,
) -> PortableRun:
    """Take a run with all that it takes to continue it.

    Args:
        snapshot: The run at rest.
        graph: Its graph.
        log: Has its rows.
        threads: Have those of its pipelines.
        stays: Whether it continues where its checkpoints are, so that its graphs may wait.

    Raises:
        InputError: It is over, or a graph of it waits and the run does not stay.
    """
    node = _next_node(snapshot)
    if node is None:
        raise InputError("This run is over, or has not begun: there is nothing to continue.")
    if not stays:
        await check_no_graph_waits(snapshot, graph)
    run_id: str = snapshot.values["run_id"]
    left_out = HISTORIES | (_OF_A_ROUND if node in _RESTING else set[str]())
    whole = await whole_values(cast("EnhancedState", snapshot.values), log)
    state: dict[str, Any] = {key: value for key, value in whole.items() if key not in left_out}
    if "questions" in whole:
        asked = whole["questions"].items()
        state["questions"] = {key: _without_used_parts(question) for key, question in asked}
    rows = await threads.rows(run_id)
    return PortableRun(
        run_id=run_id,
        next=cast("Node", node),
        state=state,
        rows=still_used(await log.export(run_id), state),
        threads={thread_id: dict(each) for thread_id, each in rows.items()},
        asked=asked_by_graphs(snapshot) if node == _STEPS else (),
    )


def _without_used_parts(question: Question) -> Question:
    """A question; of an answered one, without what only its reader and its answer needed."""
    if question.kind != "question" or question.is_open or not question.fingerprint:
        return question
    return question.model_copy(update={"details": None, "fingerprint": ""})


def still_used(rows: RunRows, state: Mapping[str, Any]) -> RunRows:
    """The rows, without results that later ones replaced, and questions answered in the state."""
    newest = {result.key: key for key, result in rows.results.items()}
    named = [*state.get("current_specialist_results", {}).values()]
    named += state.get("carried_results", {}).values()
    used = {key: result for key, result in rows.results.items() if key == newest[result.key]}
    earlier = {key: result for key, result in rows.results.items() if key not in used}
    questions: Mapping[str, Question] = state.get("questions", {})
    answered = {f"{QUESTIONS}{key}" for key, question in questions.items() if not question.is_open}
    return rows.replace(
        results=used | {k: one for k, one in earlier.items() if one in named},
        notes=tuple(
            (key, note)
            for key, note in rows.notes
            if key not in answered and not key.startswith(BARRED)
        ),
    )


async def put_on_thread(run: PortableRun, graph: Graph, log: RunLog, thread_id: str) -> None:
    """Put a run on a new thread, and its rows into the log: it continues without an input.

    Raises:
        InputError: A graph of it waits, and where it stands is in another storage.
    """
    if run.asked:
        raise InputError(
            f"The run '{run.run_id}' waits for a graph of {run.asked[0].who or 'a step'}, which "
            "only the storage that it began in can continue. Take the turn there, or begin again."
        )
    services = services_in(graph)
    await log.adopt(run.run_id, run.rows, services.clock(), waits=run.waits)
    await services.threads.adopt(run.run_id, run.threads)
    plain = plain_keys()
    update = {key: value if key in plain else Overwrite(value) for key, value in run.state.items()}
    edit: Any = Command(update=update, goto=run.next)
    written_by = _ENDING
    if run.next == _STEPS:
        # The branch there sends the steps of the round.
        edit, written_by = update, "plan_execution"
    await cast("Any", graph).aupdate_state(config_of(thread_id), edit, as_node=written_by)


def _next_node(snapshot: StateSnapshot) -> str | None:
    """The node that a run continues with; None if there is none, or it cannot travel from there."""
    if not snapshot.values.get("run_id"):
        return None  # no run has begun on this thread
    names = {_STEPS if name.startswith(_SPECIALIST) else name for name in snapshot.next}
    name = names.pop() if len(names) == 1 else None
    return name if name in get_args(Node) else None


async def close_step_of(thread_id: str, graph: Graph) -> None:
    """Write the checkpoint that a process which was killed has left out, so that a run can travel.

    Raises:
        ThreadBusyError: A run works on the thread.
    """
    config = config_of(thread_id)
    async with alone(graph, config) as owner:
        with owner.at_work() if owner else nullcontext():
            await cast("TeamGraph", graph).close_step(config)


async def export_of(run_id: str, resources: Resources) -> PortableRun:
    """Take a run that waits or was stopped, and keep it from going on here, too."""
    record = await kept_record_of(run_id, resources)
    if await is_worked_on(run_id, resources):
        raise ThreadBusyError(record.thread_id)
    storage, graph = cast("Storage", resources.storage), resources.graph
    config = config_of(record.thread_id)
    # Nobody continues it between the two.
    async with alone(graph, config) as owner:
        with owner.at_work() if owner else nullcontext():
            await cast("TeamGraph", graph).close_step(config)
            snapshot = await snapshot_of(graph, record)
            run = await portable_run(snapshot, graph, storage.log, storage.threads)
            await bar(storage.log, run_id, "exported", at=resources.clock())
    return run


async def adopt_into(
    resources: Resources,
    run: PortableRun,
    thread_id: str,
    order: JsonValue,
    labels: Mapping[str, str] | None,
) -> None:
    """Enter a run from elsewhere into the list of runs, and put it on a new thread."""
    if resources.storage is None:
        raise InputError("Without storage no run can be adopted. Give `storage`.")
    config = config_of(thread_id)
    async with alone(resources.graph, config) as owner:
        with owner.at_work() if owner else nullcontext():
            is_known = await resources.runs.get(run.run_id) is not None
            newest: StateSnapshot = await cast("Any", resources.graph).aget_state(config)
            is_here = newest.parent_config is None and newest.values.get("run_id") == run.run_id
            if is_known or (newest.values and not is_here):
                raise InputError(
                    f"The run '{run.run_id}' or the thread '{thread_id}' is here already. "
                    "Continue what is here (after `take_back`, if it was exported), or adopt the "
                    "run on a new thread of another storage."
                )
            # Who adopted it before may have been killed before it was in the list.
            if not is_here:
                await put_on_thread(run, resources.graph, resources.storage.log, thread_id)
            now = resources.clock()
            # Its newest message may be one that was sent to its host.
            plan: TaskPlan | None = run.state.get("current_plan")
            record = RunRecord(
                run_id=run.run_id,
                thread_id=thread_id,
                title=plan.title if plan and plan.title else title_of(run.state),
                order=with_team({}, resources.graph) if order is None else order,
                team=team_for(labels or {}, resources.team),
                outcome="waiting" if run.waits else "interrupted",
                started_at=now,
                updated_at=now,
                labels=checked_labels(labels),
            )
            await resources.runs.begin(record)
