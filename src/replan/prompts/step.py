"""The prompt of a model specialist: its step, its inputs, and what the request refers to."""

from collections.abc import Sequence
from typing import Any

import yaml
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from replan.prompts.messages import instructions_in, request_sections
from replan.prompts.sections import Call, call_tag, section, within_budget
from replan.prompts.templates import load, render
from replan.state.results import ExecutionContext
from replan.state.team import SpecialistCard

INPUT_BUDGET = 8_000
"""Characters of one dependency's result in a specialist's prompt."""

INPUTS_BUDGET = 80_000
"""Characters of all dependencies' results in a specialist's prompt."""

REQUEST_BUDGET = 4_000
"""Characters of the request in a specialist's prompt."""


def build_specialist_prompt(
    specialist: SpecialistCard,
    execution_context: ExecutionContext,
    *,
    system_prompt: str = "",
    output: str = "",
) -> list[BaseMessage]:
    """Ask a specialist to do its step; its own prompt replaces the first paragraph of ours."""
    context = execution_context
    built_in = render(
        load("specialist"), name=specialist.name, intended_use=specialist.intended_use
    )
    first, _, rest = built_in.partition("\n\n")
    tag = call_tag(Call(node="specialist", step=context.plan_step.id, specialist=specialist.name))
    told = instructions_in(context.messages)
    system = "\n\n".join(part for part in (system_prompt or first, rest, told, output, tag) if part)
    text = "\n\n".join(_data(context))
    return [SystemMessage(system), HumanMessage(_with_images(text, context.messages))]


def _data(context: ExecutionContext) -> list[str]:
    step = context.plan_step
    task = "\n\n".join(part for part in (context.task_description, step.brief) if part)
    parts = request_sections(context.messages, budget=REQUEST_BUDGET)
    parts.append(section("step", task, id=step.id))
    if context.parameters:
        written = yaml.safe_dump(context.parameters, allow_unicode=True, sort_keys=False)
        parts.append(section("parameters", written.strip()))
    budget = min(INPUT_BUDGET, INPUTS_BUDGET // max(1, len(context.inputs)))
    parts += [
        section("result", within_budget(text, budget), step=step_id)
        for step_id, text in context.inputs.items()
    ]
    return parts


def _with_images(text: str, messages: Sequence[BaseMessage]) -> Any:
    """Give the text, or content blocks if the request holds more than text."""
    blocks = [
        block
        for message in messages
        if message.type == "human" and isinstance(message.content, list)
        for block in message.content
        if isinstance(block, dict) and block.get("type") != "text"
    ]
    return [{"type": "text", "text": text}, *blocks] if blocks else text
