"""`think`: judge the request; with it comes the answer (simple) or the plan (complex)."""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from replan.errors import LimitReachedError
from replan.events.types import RunStarted, StepsReopened, ThinkingCompleted, ThinkingStarted
from replan.memory.conversation import conversation_of
from replan.nodes.answer_stream import AnswerStream
from replan.nodes.cut_replies import unless_cut_thought
from replan.nodes.host_call import HostCall, host_call
from replan.nodes.new_settings import asked_in, refused_in
from replan.nodes.repair import ask_readable
from replan.nodes.run_start import start_run
from replan.ports.reply_end import refusal_in, refused
from replan.ports.services import Services
from replan.prompts.conversation import request_text
from replan.prompts.host import build_thinking_prompt, request_messages
from replan.replies.readings import ThinkReading, read_think, says_simple
from replan.state.enhanced import EnhancedState, settings_of
from replan.state.limits import RunSettings
from replan.state.results import ActionType, TaskComplexity, ThinkingResult, UnreadableReply


async def think(
    state: EnhancedState,
    runtime: Runtime[RunSettings],
    config: RunnableConfig,
    *,
    services: Services,
) -> dict[str, Any]:
    """Start a run on the newest input, and judge it.

    Raises:
        InputError: There is nothing to do.
        PlanDocumentError: The plan that was handed in has mistakes.
        ModelCallError: The thinking model could not be reached.
    """
    info = runtime.execution_info
    began = services.new_id() if info is None else info.checkpoint_id
    start = await start_run(state, asked_in(runtime, services), config, services, began=began)
    call = host_call(
        "think", start.view, services=services, runtime=runtime, config=config, closing=True
    )
    call.emitter.warnings.extend(refused_in(runtime, services))
    request = request_messages(start.view)
    asked = request_text(request)
    await call.emitter.emit(RunStarted, request=asked)
    if start.reruns:
        await call.emitter.emit(StepsReopened, reruns=start.reruns)
    await call.emitter.emit(ThinkingStarted, request=asked)
    unreadable, answer = list[UnreadableReply](), None
    if start.plan is not None and services.prompts.merged_planning:
        reading = _PLAN_GIVEN
    else:
        reading, answer, unreadable = await _judged(start.view, call)
    if start.plan is not None:
        reading, answer = reading.replace(complexity=TaskComplexity.COMPLEX), None
    cut = await call.tell_cut() if answer is not None and not refusal_in(answer) else ""
    thinking = ThinkingResult(
        thought=reading.body,
        complexity=reading.complexity or TaskComplexity.SIMPLE,
        reasoning=reading.reasoning,
        next_action=reading.next_action,
        original_messages=request,
        score=reading.score,
        contradiction=reading.contradiction,
        timestamp=services.clock(),
    )
    await call.emitter.emit(ThinkingCompleted, thinking=thinking)
    return {
        **start.update,
        "final_answer": answer,
        "limit_reached": cut,
        "current_thinking_result": thinking,
        "thinking_history": [thinking],
        "unreadable_replies": unreadable,
        "usage": await call.usage(start.view),
        "warnings": Overwrite(call.emitter.warnings),
        "event_seq": Overwrite(call.emitter.counter.value),
    }


async def _judged(
    state: EnhancedState, call: HostCall
) -> tuple[ThinkReading, AIMessage | None, list[UnreadableReply]]:
    """Ask the model; a reply that cannot be read at all means a simple request."""
    prompts, threshold = call.services.prompts, settings_of(state).complexity_threshold

    def is_answer(fields: Mapping[str, str]) -> bool:
        return says_simple(fields, threshold)

    shown = AnswerStream(call.emitter, is_answer) if prompts.merged_answer else None
    try:
        reading, unreadable = await ask_readable(
            call,
            call.services.models.thinking,
            build_thinking_prompt(conversation_of(state), state, prompts),
            lambda text: unless_cut_thought(
                read_think(text, call.services.names, threshold), call.end
            ),
            shown,
            fallback="a simple request",
        )
    except LimitReachedError:
        # What is too small for this call has no room for an answer either, and that is told there.
        reading, unreadable = None, []
    if reading is None:
        return ThinkReading(complexity=TaskComplexity.SIMPLE), None, unreadable
    is_simple = (reading.complexity or TaskComplexity.SIMPLE) is TaskComplexity.SIMPLE
    answer = shown.finish(reading.body) if shown and is_simple and reading.body else None
    if answer is not None and call.end.words:
        answer = refused(answer, call.end.words)
    return reading, answer, unreadable


_PLAN_GIVEN = ThinkReading(
    complexity=TaskComplexity.COMPLEX,
    reasoning="A plan was handed in.",
    next_action=ActionType.EXECUTE_STEP,
)
