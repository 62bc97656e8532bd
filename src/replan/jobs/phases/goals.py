"""The goals of a command: the values to collect, then the action."""

from typing import Literal

from replan.base.values import Value
from replan.jobs.job import Job
from replan.jobs.spec.job_spec import JobSpec


class Goal(Value):
    """A goal of a job.

    Attributes:
        id: For example `collect_product_id` or `execute_publish`.
        type: information_gathering or task_execution.
        description: What is to be reached.
        status: pending or completed.
        priority: Counts upwards in the order of the work; the dependencies decide.
        dependencies: The ids of the goals that come before it.
    """

    id: str
    type: Literal["information_gathering", "task_execution"]
    description: str
    status: Literal["pending", "completed"] = "pending"
    priority: int
    dependencies: tuple[str, ...] = ()


def decompose_goals(spec: JobSpec, command: str, job: Job | None = None) -> tuple[Goal, ...]:
    """Return the goals of a command: one for each slot that it needs, and one to do it.

    A goal of collecting depends on the one before it; the goal of doing depends on all of them.

    Args:
        spec: The spec.
        command: The name of the command. An unknown one has no goals.
        job: The job, to mark the goals that are already reached.
    """
    wanted = spec.command(command)
    if wanted is None:
        return ()
    collected = {} if job is None else job.collected_info
    goals: list[Goal] = []
    for place, name in enumerate(spec.needs_of(command), start=1):
        goals.append(
            Goal(
                id=f"collect_{name}",
                type="information_gathering",
                description=spec.slot(name).called("en"),
                status="completed" if name in collected else "pending",
                priority=place,
                dependencies=tuple(goal.id for goal in goals[-1:]),
            )
        )
    done = job is not None and job.status == "completed"
    last = Goal(
        id=f"execute_{command}",
        type="task_execution",
        description=wanted.called("en"),
        status="completed" if done else "pending",
        priority=len(goals) + 1,
        dependencies=tuple(goal.id for goal in goals),
    )
    return (*goals, last)
