"""`feedback`: judge the round; the reply carries the final answer or the revised plan."""

from collections.abc import Mapping
from functools import partial

from langchain_core.messages import BaseMessage

from replan.errors import InputError, LimitReachedError, ModelCallError
from replan.events.types import FeedbackGenerated
from replan.host.answer_step import (
    checked_reference,
    foreseen_result,
    result_of_reference,
)
from replan.host.answer_stream import AnswerStream
from replan.host.early_plan import hear_revision
from replan.host.host_call import HostCall
from replan.host.new_settings import host_node
from replan.prompts.host import (
    RESULTS_BUDGET,
    build_feedback_prompt,
    unread_warning,
)
from replan.prompts.repeated import REPEATED, repeats_instructions
from replan.replies.readings import (
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
    why_reached,
)


@host_node("feedback")
async def feedback(state: EnhancedState, call: HostCall) -> EnhancedState:
    """Judge by rule if nothing needs judgement, else ask the model; the rules overrule it."""
    services = call.services
    collected = state.get("current_collected_results")
    if collected is None:
        raise InputError("There are no collected results in the state to judge.")
    limit = reached_limit(state)
    if limit:
        await call.report_limit(limit, limit_value(state, limit), why_reached(state, limit))
    budget = RESULTS_BUDGET
    if services.is_direct or not needs_model(state):
        judged = fallback_feedback(state, "The plan goes on.")
    elif (foreseen := foreseen_result(state, call.emitter.warnings)) is not None:
        judged = _foreseen(foreseen, call)
    else:
        judged, budget = await _ask_model(state, collected, call)
    goes_on = should_continue_execution(judged, state)
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
        cut = await call.report_cut()
        limit = limit or cut
        # An answer by reference leaves nothing of the result out.
        is_read = judged.answer_step is not None
        unread = "" if is_read else unread_warning(state, services.prompts, budget, collected)
        await call.emitter.warn(*([unread] if unread else []))
    await call.emitter.emit(FeedbackGenerated, feedback=judged)
    return {
        "current_feedback_result": judged,
        "limit_reached": limit,
        **await call.update(state),
    }


async def _ask_model(
    state: EnhancedState, collected: CollectedResults, call: HostCall
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
        hear_revision(state, call, is_revision)
    shown = AnswerStream(call.emitter, is_answer) if prompts.merged_final_answer else None
    try:
        reading, budget = await _reading(state, collected, call, shown)
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
        return fallback_feedback(state, "The judgement could not be read."), budget
    judged = _result(reading, state, shown)
    if asks_for_revision(judged) and not may_be_revised(state):
        problem = "The reply requests a change, but the plan must not be revised."
        await call.report_unreadable(problem, "the plan stays as it is")
    return judged, budget


async def _reading(
    state: EnhancedState, collected: CollectedResults, call: HostCall, shown: AnswerStream | None
) -> tuple[FeedbackReading, int]:
    """Read the model's judgement, if necessary of shorter results; return their length, too."""
    prompts = call.services.prompts
    holds_plan = prompts.merged_planning and may_be_revised(state)
    missing = missing_from(state) or "nothing" if reached_limit(state) else ""

    def prompt_of(budget: int) -> list[BaseMessage]:
        return build_feedback_prompt(collected, state, prompts, missing=missing, budget=budget)

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
