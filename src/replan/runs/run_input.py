"""The input of a run: given, stored, and read again."""

from collections.abc import Mapping
from typing import Any, cast

from langchain_core.messages import message_to_dict, messages_from_dict
from pydantic import JsonValue

from replan.base.errors import InputError
from replan.plan.markdown.document import PlanDocument
from replan.plan.model import TaskPlan
from replan.ports.run_book import RunRecord
from replan.runs.calling.compiled import Graph
from replan.runs.calling.given_input import Input, checked_input, messages_in, with_request
from replan.state.input_guard import CheckedInput

_TITLE = 200  # the most characters of a title that is taken from the request


def new_input(graph: Graph, request: Input) -> CheckedInput:
    """The input of a new run, as it is put on record.

    Raises:
        InputError: It says nothing, continues a run, or its plan names unknown specialists.
        PlanDocumentError: Its plan has mistakes.
    """
    run_input = with_request(request)
    if not isinstance(run_input, Mapping):
        raise InputError(
            "A run begins with a text, or with a mapping that has `messages` or `plan`. "
            "Continue one that has begun with `resume` or `answer`."
        )
    return checked_input(graph, run_input)


def title_of(run_input: Mapping[str, Any]) -> str:
    """The title of a new run: that of its plan, else the request, else the plan's first step."""
    document = run_input.get("plan")
    plan = PlanDocument.recover(document).plan if isinstance(document, str) else TaskPlan()
    return " ".join((plan.title or _request_text(run_input).strip() or plan.goal).split())[:_TITLE]


def _request_text(run_input: Mapping[str, Any]) -> str:
    return str(messages_in(run_input)[-1].content) if run_input.get("messages") else ""


def stored_input(run_input: Mapping[str, Any]) -> dict[str, JsonValue]:
    """The stored input of a run, in case it is killed before it has a state."""
    messages: JsonValue = [message_to_dict(message) for message in messages_in(run_input)]
    others = {
        name: run_input[name]
        for name in ("plan", "plan_by", "answers")
        if run_input.get(name) is not None
    }
    return {"input": {**others, "messages": messages}}


def input_of_record(record: RunRecord) -> Input:
    """The input of a run that was killed before it had a state, from its record."""
    kept = record.order.get("input") if isinstance(record.order, dict) else None
    if not isinstance(kept, dict):
        raise InputError(
            f"The run {record.run_id} was killed before it had a state, and what it was asked to "
            "do is not kept. Start it again."
        )
    messages = messages_from_dict(cast("Any", kept).get("messages", []))
    return {**kept, "messages": messages}
