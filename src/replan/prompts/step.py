"""The prompt of a model specialist: its step, its inputs, and the context of the request."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from langchain_core.messages import BaseMessage
from pydantic import JsonValue

from replan.prompts.sections import (
    Call,
    data_message,
    instructions_in,
    knowledge_section,
    request_sections,
    section,
    summary_section,
    system_message,
    within_budget,
)
from replan.prompts.templates import load, render
from replan.state.results import ExecutionContext
from replan.state.team import SpecialistCard

INPUT_BUDGET = 8_000
"""Characters of one dependency's result in a specialist's prompt."""

INPUTS_BUDGET = 80_000
"""Characters of all dependencies' results in a specialist's prompt."""

REQUEST_BUDGET = 4_000
"""Characters of the request in a specialist's prompt."""


@dataclass(frozen=True)
class StepPrompt:
    """What is in all prompts of a specialist, assembled when the team is."""

    specialist: str
    instructions: str

    @classmethod
    def of(cls, card: SpecialistCard, system_prompt: str = "") -> Self:
        """Begin with the specialist's own prompt, or with the first paragraph of ours."""
        built_in = render(load("specialist"), name=card.name, intended_use=card.intended_use)
        first, _, rest = built_in.partition("\n\n")
        return cls(card.name, "\n\n".join(part for part in (system_prompt or first, rest) if part))

    def messages(self, context: ExecutionContext, output: str = "") -> list[BaseMessage]:
        """Ask the specialist to do a step."""
        call = Call(node="specialist", step=context.plan_step.id, specialist=self.specialist)
        instructions = instructions_in(context.messages)
        system = system_message(call, self.instructions, instructions, output)
        return [system, data_message(*_data(context), blocks=_beside_text(context.messages))]


def _data(context: ExecutionContext) -> list[str]:
    known, inputs = context.knowledge_context, context.inputs.items()
    budget = min(INPUT_BUDGET, INPUTS_BUDGET // max(1, len(inputs)))
    # As for the host: what is known is before what was said.
    return [
        summary_section(context.summary),
        known and knowledge_section(known),
        *request_sections(context.messages, budget=REQUEST_BUDGET),
        section("step", context.task, id=context.plan_step.id),
        _parameters(context.parameters) if context.parameters else "",
        *(section("result", within_budget(text, budget), step=step_id) for step_id, text in inputs),
    ]


def _parameters(parameters: Mapping[str, JsonValue]) -> str:
    from replan.plan.markdown.parameters import write_parameters  # noqa: PLC0415 - few have any

    return section("parameters", write_parameters(parameters))


def _beside_text(messages: Sequence[BaseMessage]) -> list[Any]:
    """The content blocks of the request that are no text, such as images."""
    return [
        block
        for message in messages
        if message.type == "human" and isinstance(message.content, list)
        for block in message.content
        if isinstance(block, dict) and block.get("type") != "text"
    ]
