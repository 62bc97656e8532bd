"""Reads a reply as the nodes of the host do: what it says, or what the model is asked about it."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from reply_forms import TEAM, Meant, Task

from replan import Host, Specialist, Team
from replan.assembly import models_from_environment
from replan.assembly.team_services import services_of
from replan.nodes.host.model_revision import revision_of
from replan.nodes.host.plan_texts import new_plan_of_model, read_plan
from replan.plan.markdown.document import PlanDocument
from replan.plan.markdown.overlooked import overlooked
from replan.plan.model import PlanStep, TaskPlan
from replan.prompts.replies.readings import read_feedback, read_think
from replan.specialists.services import Services
from replan.state.results import FeedbackResult
from replan.testing import ScriptedModel

Grade = Literal["right", "asked", "wrong"]

OTHER_CALL = "A call of its own makes the answer."

Step = tuple[int, str, str, str, tuple[int, ...], object]
"""A step: its number, text, brief, who does it, what it waits for, and its other options."""


@dataclass(frozen=True)
class Found:
    """What a node makes of a reply.

    Attributes:
        asked: What the model is asked, or nothing.
        label: The complexity or the verdict.
        text: The answer; empty where there is a plan.
        steps: The plan, or that after the revision.
        unread: What people are warned of, or nothing.
    """

    unread: str = ""
    asked: str = ""
    label: str = ""
    text: str = ""
    steps: tuple[Step, ...] = ()


@cache
def services(names: tuple[str, ...] = TEAM) -> Services:
    """Those of a team with these members."""
    team = [Specialist(name, f"Does the work of a {name}.", run=lambda _: "done") for name in names]
    config = Team(host=Host(model=ScriptedModel({})), specialists=team)
    return services_of(config, models_from_environment(environment={}))


def read_thought(text: str, of: Services) -> Found:
    """Read a reply to `think`."""
    reading = read_think(text, of.names)
    if reading.wrong:
        return Found(asked=reading.complaint)
    label = str(reading.complexity)
    if label == "simple" and not reading.body:
        return Found(asked=OTHER_CALL)
    if label == "simple":
        return Found(label=label, text=reading.body, unread=reading.odd)
    planned = read_plan(reading.body, of.team)
    if planned.wrong:
        return Found(asked=planned.wrong)
    plan = new_plan_of_model(planned.plan, of)
    unread = f"{reading.odd}{_doubts(plan)}"
    return Found(label=label, steps=steps_of(plan.steps), unread=unread)


def read_judgement(text: str, of: Services, old: TaskPlan) -> Found:
    """Read a reply to `feedback` about a plan."""
    reading = read_feedback(text, of.names)
    if reading.wrong:
        return Found(asked=reading.complaint)
    label = str(reading.verdict)
    if label == "complete" and not reading.body:
        return Found(asked=OTHER_CALL)
    if label == "complete":
        return Found(label=label, text=reading.body, unread=reading.odd)
    judged = FeedbackResult(
        should_continue=True, plan_update_suggestion=reading.update, revised_plan=reading.body
    )
    if not reading.body:
        return Found(label=label, steps=steps_of(old.steps), unread=reading.odd)
    revision = revision_of(old, reading.body, judged, of, step_timeout=600)
    if revision.wrong:
        return Found(asked=revision.wrong)
    unread = f"{reading.odd}{_doubts(revision.plan)}"
    return Found(label=label, steps=steps_of(revision.plan.steps), unread=unread)


def _doubts(plan: TaskPlan) -> str:
    """What of a plan people are warned of."""
    return " ".join(map(str, overlooked(plan.content)))


def read(meant: Meant, text: str) -> Found:
    """Read a reply as the node does that asked for it."""
    if meant.kind in ("plan", "answer"):
        return read_thought(text, services())
    return read_judgement(text, services(), old_plan(meant))


@cache
def old_plan(meant: Meant) -> TaskPlan:
    """The plan that is judged."""
    return PlanDocument.parse(meant.old_plan()).plan


def grade(meant: Meant, found: Found) -> Grade:
    """Compare what was found with what is meant."""
    if found.asked:
        return "asked"
    steps = tuple(map(_said, found.steps))
    is_right = found.label in (meant.label, "moderate" if meant.label == "complex" else "")
    is_right = is_right and steps == _meant(meant.tasks)
    return "right" if is_right and found.text == meant.topic.answer * (not steps) else "wrong"


def _said(step: Step) -> tuple[str, str, tuple[int, ...]]:
    return step[1], step[3], step[4]


def _meant(tasks: Iterable[Task]) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
    return tuple((task.text, task.who, task.after) for task in tasks)


def steps_of(steps: Iterable[PlanStep]) -> tuple[Step, ...]:
    """The steps of a plan, without how they went."""
    return tuple(
        (
            step.id,
            step.description,
            step.brief,
            " ".join(step.specialists),
            step.dependencies,
            (step.condition, step.optional, step.priority, step.max_retries, step.timeout),
        )
        for step in steps
    )
