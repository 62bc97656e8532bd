"""The input of a caller: whether a run can begin from it, and its plan."""

from collections.abc import Mapping
from typing import Any, cast

from langchain_core.messages import HumanMessage, RemoveMessage
from langgraph.types import Overwrite
from pydantic import JsonValue

from replan.base.errors import InputError, PlanDocumentError
from replan.nodes.host.plan_bounds import check_outside_plan
from replan.nodes.host.plan_texts import new_plan_of_model
from replan.plan.markdown.document import PlanDocument
from replan.plan.model import TaskPlan
from replan.plan.rerun import Rerun, reopened, rerun_reasons
from replan.specialists.services import Services
from replan.state.channels import checked, conversation
from replan.state.enhanced import PlanAuthor
from replan.state.person.answers import answers_in_advance
from replan.state.step_options import plan_mistakes

NOTHING_TO_DO = "There is nothing to do: give `messages` with words, or a `plan`."
"""The error for an empty input."""


def check_input(run_input: Any, services: Services) -> None:
    """Refuse an unusable input before anything of it is stored."""
    if not isinstance(run_input, Mapping):
        raise InputError(
            f"The input is a {type(run_input).__name__}. Give a mapping with `messages`, for "
            'example {"messages": [("user", "...")]}, or with a plan under `plan`.'
        )
    fields = cast("Mapping[str, Any]", run_input)
    if not fields:
        # LangGraph draws a graph by passing it no input; the first node refuses that.
        return
    if not isinstance(fields.get("plan"), str | None):
        kind = type(fields["plan"]).__name__
        raise InputError(f"The plan is a {kind}. Give the text of its document, in Markdown.")
    document = fields.get("plan") or ""
    author: PlanAuthor | None = fields.get("plan_by")
    if author is not None:
        author = checked("plan_by", PlanAuthor, author)
    plan, _ = read_handed_plan(document, services, author)
    if plan is None and _is_blank(fields.get("messages")):
        raise InputError(NOTHING_TO_DO)
    if fields.get("answers") is not None:
        answers = checked("answers", dict[str, JsonValue], fields["answers"])
        answers_in_advance(answers, services.clock())


def _is_blank(messages: Any) -> bool:
    if isinstance(messages, Overwrite):
        messages = messages.value
    messages = cast("list[Any]", messages) if isinstance(messages, list) else [messages]
    newest = messages[-1] if messages else None
    if newest is None or isinstance(newest, RemoveMessage):
        return newest is None
    (message,) = [newest] if type(newest) is HumanMessage else conversation([], [[newest]])
    return message.type == "human" and not str(message.content).strip()


def read_handed_plan(
    text: str | None,
    services: Services,
    author: PlanAuthor | None = None,
    before: TaskPlan | None = None,
) -> tuple[TaskPlan | None, tuple[Rerun, ...]]:
    """Read a handed-in document strictly, and reopen steps that a person has edited.

    The marks and results of a model's document do not count. A client's document keeps of the
    unfinished plan `before`, which it replaces, what only the team may remove.
    """
    if not text or not text.strip():
        return None, ()
    document = PlanDocument.recover(text)
    if mistakes := plan_mistakes(document, services.team):
        raise PlanDocumentError(mistakes)
    if services.is_served:
        check_outside_plan(text, services, before)
    if author == "model":
        return new_plan_of_model(document.plan, services), ()
    reruns = rerun_reasons(document.plan)
    return reopened(document.plan, reruns), reruns
