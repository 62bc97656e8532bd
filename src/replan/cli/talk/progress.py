"""The progress of a run that another process has begun, or that waits."""

from collections.abc import Sequence
from dataclasses import replace

from replan.events.types import PlanCreated
from replan.plan.model import TaskPlan
from replan.runs.asked.asks import Ask
from replan.views.cells import one_line
from replan.views.live.course import Course, after
from replan.views.live.teller import seconds


def course_of(plan: TaskPlan) -> Course:
    """The course of a run that another process has begun."""
    created = PlanCreated(run_id="", plan=plan, markdown=plan.content)
    return after(Course(started=seconds()), created, seconds())


def asking(course: Course, asks: Sequence[Ask]) -> Course:
    """The course with the steps that ask marked."""
    asking = {
        ask.step_id: replace(
            course.rows[ask.step_id], asks=True, note=f"asks: {one_line(ask.text)}"
        )
        for ask in asks
        if ask.step_id in course.rows
    }
    return replace(course, rows={**course.rows, **asking})
