"""`think`: judge the request; the reply may include the answer (simple) or plan (complex)."""

from collections.abc import Mapping
from typing import Any, cast

from langchain_core.messages import AIMessage
from langgraph.types import Overwrite

from replan.base.errors import LimitReachedError
from replan.log.events.types import MemoryApplied, ThinkingCompleted, ThinkingStarted
from replan.models.reply_end import refusal_in, refused
from replan.nodes.host.answer import step_number
from replan.nodes.host.early_plan import end_early_steps, hear_first_plan
from replan.nodes.host.host_call import HostCall
from replan.nodes.host.host_knowledge import knowledge_of_request
from replan.nodes.host.new_settings import host_node
from replan.nodes.host.reply_parts import AnswerStream
from replan.prompts.host import build_thinking_prompt, request_messages
from replan.prompts.repeated import REPEATED, repeats_instructions
from replan.prompts.replies.readings import (
    ThinkReading,
    no_thought,
    read_think,
    says_simple,
    unless_cut,
)
from replan.state.conversation.conversation import Seen
from replan.state.enhanced import EnhancedState, settings_of
from replan.state.results import ActionType, TaskComplexity, ThinkingResult


@host_node("think")
async def think(state: EnhancedState, call: HostCall) -> dict[str, Any]:
    """Judge the request of a run."""
    services = call.services
    await call.emitter.emit(ThinkingStarted, request=call.request)
    if not (visible := services.prompts.visible_messages(state)).is_whole:
        mode = services.prompts.memory_in(state).mode
        await call.emitter.emit(MemoryApplied, node="think", mode=mode, **visible.numbers)
    has_plan = state.get("current_plan") is not None
    knowledge_update: EnhancedState = {}
    if not has_plan and (knowledge := await knowledge_of_request(state, call)) is not None:
        knowledge_update["knowledge"] = knowledge
        state = cast("EnhancedState", {**state, **knowledge_update})
    answer = None
    if has_plan and services.prompts.merged_planning:
        reading = _PLAN_GIVEN
    else:
        reading, answer = await _ask_model(visible, state, call)
    if has_plan:
        reading, answer = reading.replace(complexity=TaskComplexity.COMPLEX), None
    if answer is not None:
        await end_early_steps(call)
    cut = await call.report_cut() if answer is not None and not refusal_in(answer) else ""
    thinking = ThinkingResult(
        thought=reading.body,
        complexity=reading.complexity,
        reasoning=reading.reasoning,
        next_action=reading.next_action,
        original_messages=request_messages(state),
        score=reading.score,
        answer_step=step_number(reading.answer_step) if services.prompts.foresees else None,
        contradiction=reading.contradiction,
        timestamp=services.clock(),
    )
    await call.emitter.emit(ThinkingCompleted, thinking=thinking)
    return {
        **knowledge_update,
        "previous_plan": "",
        "final_answer": answer,
        "limit_reached": cut,
        "current_thinking_result": thinking,
        "thinking_history": [thinking],
        **await call.update(state),
        "warnings": Overwrite([*state.get("warnings", []), *call.emitter.warnings]),
    }


async def _ask_model(
    seen: Seen, state: EnhancedState, call: HostCall
) -> tuple[ThinkReading, AIMessage | None]:
    """Ask the model; a reply that cannot be read at all means a simple request."""
    prompts, threshold = call.services.prompts, settings_of(state).complexity_threshold

    def is_answer(fields: Mapping[str, str]) -> bool:
        return says_simple(fields, threshold)

    def is_plan(fields: Mapping[str, str]) -> bool:
        return not is_answer(fields)

    if prompts.merged_planning:
        hear_first_plan(state, call, call.services.models.thinking, is_plan)
    shown = AnswerStream(call.emitter, is_answer) if prompts.merged_answer else None
    prompt = build_thinking_prompt(seen, state, prompts)

    def read(text: str) -> ThinkReading:
        if repeats_instructions(text, prompt, call.request):
            return no_thought(REPEATED)
        reading = read_think(text, call.services.names, threshold)
        return unless_cut(reading, call.end.problem, "the plan is asked for by itself")

    try:
        reading = await call.ask_readable(call.services.models.thinking, prompt, read, shown)
    except LimitReachedError:
        # A limit that is too small for this call is too small for an answer, which reports it.
        return ThinkReading(), None
    has_answer = not reading.is_plan and reading.body != ""
    answer = shown.finish(reading.body) if shown and has_answer else None
    if answer is not None and call.end.words:
        answer = refused(answer, call.end.words)
    return reading, answer


_PLAN_GIVEN = ThinkReading(
    complexity=TaskComplexity.COMPLEX,
    reasoning="A plan was handed in.",
    next_action=ActionType.EXECUTE_STEP,
)
