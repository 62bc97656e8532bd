"""The input of a run: given, stored, and read again."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict
from pydantic import JsonValue

from replan.errors import InputError
from replan.plan.markdown.document import PlanDocument
from replan.plan.model import TaskPlan
from replan.ports.run_book import RunRecord
from replan.runs.calling.new_or_continued import Input
from replan.state.channels import conversation

_TITLE = 200  # the most characters of a title that is taken from the request


def input_mapping(run_input: Input) -> dict[str, Any]:
    """The input of a new run as a mapping."""
    if isinstance(run_input, str):
        return {"messages": [("user", run_input)]}
    if not isinstance(run_input, Mapping):
        raise InputError(
            "A run begins with a text, or with a mapping that has `messages` or `plan`. "
            "Continue one that has begun with `resume` or `answer`."
        )
    return dict(run_input)


def title_of(run_input: Mapping[str, Any]) -> str:
    """The title of a new run: that of its plan, else the request, else the plan's first step."""
    document = run_input.get("plan")
    plan = PlanDocument.recover(document).plan if isinstance(document, str) else TaskPlan()
    return " ".join((plan.title or _request_text(run_input).strip() or plan.goal).split())[:_TITLE]


def _request_text(run_input: Mapping[str, Any]) -> str:
    return str(_messages(run_input)[-1].content) if run_input.get("messages") else ""


def _messages(run_input: Mapping[str, Any]) -> Sequence[BaseMessage]:
    return conversation([], [run_input.get("messages") or []])


def stored_input(run_input: Mapping[str, Any]) -> dict[str, JsonValue]:
    """The stored input of a run, in case it is killed before it has a state."""
    messages: JsonValue = [message_to_dict(message) for message in _messages(run_input)]
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
