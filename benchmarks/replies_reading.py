"""Reads one reply of the corpus as the node does that it is written for."""

from dataclasses import dataclass, field

from langchain_core.messages import AIMessage
from reply_families.drawing import Item, Meant, Task

from replan.host.plan_texts import complaint_about, plan_in, plan_with_team_names
from replan.plan.markdown.document import PlanDocument
from replan.plan.model import TaskPlan
from replan.replies.readings import read_answer, read_feedback, read_plan, read_think
from replan.replies.specialist_reading import read_specialist
from replan.replies.unreadable import Complaint
from replan.replies.written_plans.finding import FoundPlan
from replan.spending import charging
from replan.state.team import SpecialistCard


@dataclass(frozen=True)
class Found:
    """What a node makes of a reply."""

    outcome: str = ""
    text: str = ""
    plan: TaskPlan = field(default_factory=TaskPlan)
    asked: bool = False
    told: bool = False
    why: str = ""

    def fault(self, meant: Meant) -> str:
        """What differs from what was meant, or nothing."""
        if self.outcome != meant.outcome:
            return f"{self.outcome} for {meant.outcome}: {self.text!r}"
        if meant.outcome == "plan":
            return difference(self.plan, meant.tasks)
        return "" if self.text.strip() == meant.text.strip() else f"text {self.text!r}"

    def is_clean(self, meant: Meant) -> bool:
        """Whether the steps say what they should and nothing else."""
        said = [_squeezed(step.description) for step in self.plan.steps]
        return said == [_squeezed(task.text) for task in meant.tasks]


def read(item: Item) -> Found:
    """Read a reply as its node does."""
    match item.reader:
        case "think":
            return _think(item)
        case "feedback":
            return _feedback(item)
        case "plan":
            return _planned(read_plan(item.text, item.team), item)
        case "answer":
            return Found("answer", read_answer(item.text))
        case "specialist":
            reading = read_specialist(item.text)
            return Found(str(reading.status), reading.body)
        case "usage":
            return _usage(item)


def _think(item: Item) -> Found:
    reading = read_think(item.text, item.team)
    if isinstance(reading, Complaint):
        return Found(asked=True, why=reading.problem)
    if reading.body and reading.complexity != "simple":
        return _planned(plan_in(reading.body, item.team), item)
    return Found("answer", reading.body) if reading.body else Found(asked=True, why="no answer")


def _feedback(item: Item) -> Found:
    reading = read_feedback(item.text, item.team)
    if isinstance(reading, Complaint):
        return Found(asked=True, why=reading.problem)
    if reading.verdict == "complete":
        return Found("complete", reading.body)
    return _planned(plan_in(reading.body, item.team), item) if reading.body else Found("continue")


def _planned(found: FoundPlan, item: Item) -> Found:
    team = [SpecialistCard(name=name, intended_use="") for name in item.team]
    if problem := complaint_about(found, team):
        return Found(asked=True, why=problem)
    plan = PlanDocument.recover(found.text).plan
    return Found("plan", plan=plan_with_team_names(plan, team))


def _usage(item: Item) -> Found:
    message = AIMessage("")
    # A server's numbers come to the message unchecked.
    message.usage_metadata = eval(item.text, {"__builtins__": {}}, _NUMBERS)  # noqa: S307
    tokens = charging.reported_tokens(message)
    return Found("usage") if min(tokens.input_tokens, tokens.output_tokens) >= 0 else Found("bad")


_NUMBERS = {"nan": float("nan"), "inf": float("inf")}


def difference(plan: TaskPlan, tasks: tuple[Task, ...]) -> str:
    """Say how a plan differs from what was meant, or nothing."""
    if len(plan.steps) != len(tasks):
        return f"{len(plan.steps)} steps for {len(tasks)}"
    place = {step.id: at for at, step in enumerate(plan.steps, 1)}
    for step, task in zip(plan.steps, tasks, strict=True):
        if _squeezed(task.text) not in _squeezed(f"{step.description} {step.brief}"):
            return f"step {step.id} says {step.description!r}"
        if list(step.specialists) != task.who.split("+"):
            return f"step {step.id} is for {step.specialists}, not {task.who}"
        if {place[other] for other in step.dependencies} != set(task.after):
            return f"step {step.id} waits for {step.dependencies}, not {task.after}"
    return ""


def _squeezed(text: str) -> str:
    return " ".join(text.replace("\u3000", " ").split())
