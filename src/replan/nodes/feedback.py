"""`feedback`: judge the round; the reply carries the final answer or the revised plan."""

from collections.abc import Mapping, Sequence
from functools import partial

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage

from replan.base.errors import InputError, LimitReachedError, ModelCallError
from replan.base.langgraph_inside.tasks import checkpoint_of
from replan.log.events.types import AnswerReset, FeedbackGenerated
from replan.log.rows import Request
from replan.nodes.host.answer import (
    checked_reference,
    foreseen_result,
    result_of_reference,
)
from replan.nodes.host.early_plan import hear_revision
from replan.nodes.host.host_call import HostCall
from replan.nodes.host.new_settings import host_node
from replan.nodes.host.reply_parts import AnswerStream
from replan.nodes.host.steered_plan import report_outcome
from replan.ports.run_context import here
from replan.prompts.host import (
    RESULTS_BUDGET,
    build_feedback_prompt,
    unread_warning,
)
from replan.prompts.repeated import REPEATED, repeats_instructions
from replan.prompts.replies.readings import (
    FeedbackReading,
    no_judgement,
    read_feedback,
    says_complete,
    unless_cut,
)
from replan.state.enhanced import EnhancedState
from replan.state.results import CollectedResults, FeedbackResult, SpecialistResult
from replan.state.rules import (
    asks_for_revision,
    cut_off_by,
    fallback_feedback,
    limit_value,
    may_be_revised,
    may_complete,
    missing_from,
    needs_model,
    reached_limit,
    should_continue_execution,
    spent_limit,
    why_reached,
)


@host_node("feedback")
async def feedback(state: EnhancedState, call: HostCall) -> EnhancedState:
    """Judge by rule if nothing needs judgement, else ask the model; the rules overrule it."""
    collected = state.get("current_collected_results")
    if collected is None:
        raise InputError("There are no collected results in the state to judge.")
    limit = reached_limit(state)
    if limit:
        await call.report_limit(limit, limit_value(state, limit), why_reached(state, limit))
    words = await _new_words(call)
    messages: list[AnyMessage] = [HumanMessage(request.text) for request in words]
    state = {**state, "messages": [*state.get("messages", []), *messages]} if messages else state
    judged, budget = await _judge(state, collected, call, words)
    goes_on = _goes_on(judged, state, call)
    if not limit and (limit := cut_off_by(judged, state)):
        await call.report_limit(limit, limit_value(state, limit), why_reached(state, limit))
    # Where every step is done, the answer may still find room: a shorter question asks for it.
    if call.refused is not None and not limit and not goes_on and missing_from(state):
        limit = call.refused.limit
        await call.report_limit(limit, call.refused.value, call.refused.reason)
    judged = judged.replace(
        collected_results=collected,
        should_continue=goes_on,
        final_answer=None if goes_on else judged.final_answer,
    )
    if judged.final_answer is not None:
        cut = await _report_answer(judged, collected, state, call, budget)
        limit = limit or cut
    await call.emitter.emit(FeedbackGenerated, feedback=judged)
    update: EnhancedState = {
        "current_feedback_result": judged,
        "limit_reached": limit,
        **await call.update(state),
    }
    if messages:
        update["messages"] = messages
    return update


async def _judge(
    state: EnhancedState, collected: CollectedResults, call: HostCall, words: Sequence[Request]
) -> tuple[FeedbackResult, int]:
    """Return the judgement, and the length of the results that it was made with."""
    if words:
        judged, budget = await _ask_model(state, collected, call, words)
        await _report_words(words, judged, call)
        return judged, budget
    if call.services.is_direct or not needs_model(state):
        return fallback_feedback(state, "The plan goes on."), RESULTS_BUDGET
    if (foreseen := foreseen_result(state, call.emitter.warnings)) is not None:
        return _foreseen(foreseen, call), RESULTS_BUDGET
    return await _ask_model(state, collected, call, ())


async def _report_answer(
    judged: FeedbackResult,
    collected: CollectedResults,
    state: EnhancedState,
    call: HostCall,
    budget: int,
) -> str:
    """Report what an answer lacks; return why it was cut off, or an empty text."""
    cut = await call.report_cut()
    # An answer by reference leaves nothing of the result out.
    is_read = judged.answer_step is not None
    unread = "" if is_read else unread_warning(state, call.services.prompts, budget, collected)
    await call.emitter.warn(*([unread] if unread else []))
    return cut


async def _new_words(call: HostCall) -> Sequence[Request]:
    """What people said to the host since it judged last."""
    steering = here().steering
    if steering is None:
        return ()
    return await steering.take("message", checkpoint_of(call.runtime), call.services.log)


def _goes_on(judged: FeedbackResult, state: EnhancedState, call: HostCall) -> bool:
    """Whether another round follows: also where something came while this one was judged."""
    if should_continue_execution(judged, state):
        return True
    steering = here().steering
    if steering is None or not steering.asked or spent_limit(state):
        return False
    if judged.final_answer is not None:
        # It was shown already, and the next round makes another one.
        call.emitter.stream(AnswerReset)
    return True


async def _report_words(
    requests: Sequence[Request], judged: FeedbackResult, call: HostCall
) -> None:
    """Report that the host has judged with these words, or why it has not."""
    for request in requests:
        if judged.by == "model":
            await report_outcome(request, "taken", call.emitter, call.services.log)
            continue
        reason = f"The host gave no judgement. {judged.feedback}"
        await report_outcome(request, "refused", call.emitter, call.services.log, reason=reason)
        person = request.by or "a person"
        await call.emitter.warn(f"The message of {person} was not considered: {reason}")


async def _ask_model(
    state: EnhancedState,
    collected: CollectedResults,
    call: HostCall,
    words: Sequence[Request],
) -> tuple[FeedbackResult, int]:
    """Ask the model; if its reply cannot be had or read, decide by the status of the steps.

    Return the judgement, and the length of the results that it was made with.
    """
    prompts, budget = call.services.prompts, RESULTS_BUDGET

    def is_answer(fields: Mapping[str, str]) -> bool:
        return says_complete(fields) and may_complete(state)

    def is_revision(fields: Mapping[str, str]) -> bool:
        return not says_complete(fields)

    if prompts.merged_planning and may_be_revised(state):
        hear_revision(state, call, call.services.models.feedback, is_revision)
    shown = AnswerStream(call.emitter, is_answer) if prompts.merged_final_answer else None
    try:
        reading, budget = await _reading(state, collected, call, shown, words)
    except ModelCallError as error:
        missing = (
            "The host's model gave no judgement, so the status of the steps decided: "
            f"{error.problem}"
        )
        await call.emitter.warn(missing)
        return fallback_feedback(state, missing), budget
    except LimitReachedError as error:
        return fallback_feedback(state, str(error)), budget
    if not reading.counts:
        return fallback_feedback(state, _UNREAD), budget
    judged = _result(reading, state, shown)
    if asks_for_revision(judged) and not may_be_revised(state):
        problem = "The reply requests a change, but the plan must not be revised."
        await call.report_unreadable(problem, "the plan stays as it is")
    return judged, budget


_UNREAD = "The judgement could not be read, so the host has not checked the results."


async def _reading(
    state: EnhancedState,
    collected: CollectedResults,
    call: HostCall,
    shown: AnswerStream | None,
    words: Sequence[Request],
) -> tuple[FeedbackReading, int]:
    """Read the model's judgement, if necessary of shorter results; return their length, too."""
    prompts = call.services.prompts
    holds_plan = prompts.merged_planning and may_be_revised(state)
    missing = missing_from(state) or "nothing" if reached_limit(state) else ""

    said = "\n\n".join(request.text for request in words)

    def prompt_of(budget: int) -> list[BaseMessage]:
        return build_feedback_prompt(
            collected, state, prompts, missing=missing, said=said, budget=budget
        )

    whole = prompt_of(RESULTS_BUDGET)

    def read(text: str) -> FeedbackReading:
        if repeats_instructions(text, whole, call.request):
            return no_judgement(REPEATED)
        reading = read_feedback(text, call.services.names, holds_plan=holds_plan)
        reading = unless_cut(reading, call.end.problem, "the plan stays as it is")
        return checked_reference(reading, state, call.services.output, call.end)

    judge = partial(call.ask_readable, call.services.models.feedback, read=read, answer=shown)

    try:
        return await judge(whole), RESULTS_BUDGET
    except ModelCallError as error:
        budget = await call.shorter_after(error, prompt_of, RESULTS_BUDGET)
        return await judge(prompt_of(budget), goes_on=True), budget


def _foreseen(answer: SpecialistResult, call: HostCall) -> FeedbackResult:
    return FeedbackResult(
        feedback=f"Every step succeeded at once, and the plan named step {answer.step_id} as the "
        "one that answers.",
        should_continue=False,
        final_answer=AnswerStream(call.emitter).finish(answer.text),
        answer_step=answer.step_id,
        by="rule",
    )


def _result(
    reading: FeedbackReading, state: EnhancedState, shown: AnswerStream | None
) -> FeedbackResult:
    complete = reading.verdict == "complete"
    named = result_of_reference(reading, state)
    answer = reading.body if named is None else named.text
    answer = answer if complete and may_complete(state) else ""
    return FeedbackResult(
        feedback=reading.feedback,
        should_continue=not complete,
        suggested_action=reading.suggested_action,
        plan_update_suggestion="" if complete else reading.update,
        plan_update_type=reading.plan_update_type,
        revised_plan="" if complete else reading.body,
        final_answer=shown.finish(answer) if shown and answer else None,
        answer_step=named.step_id if named and answer else None,
        contradiction=reading.contradiction,
    )
