"""`final_answer`: end the run with the answer, and list what is missing."""

from collections.abc import Callable

from langchain_core.messages import AIMessage, BaseMessage
from pydantic import JsonValue

from replan.base.errors import LimitReachedError, ModelCallError
from replan.nodes.host.answer import Answer, completed, end_run, with_output
from replan.nodes.host.early_plan import end_early_steps
from replan.nodes.host.host_call import HostCall
from replan.nodes.host.new_settings import host_node
from replan.nodes.host.reply_parts import AnswerStream
from replan.plan.markdown.seal import sealed
from replan.plan.model import StepStatus
from replan.prompts.host import build_final_answer_prompt, unread_warning
from replan.state.enhanced import EnhancedState, plan_of, with_history
from replan.state.outcomes import CUTS, NO_ANSWER, Outcome
from replan.state.results import newest_results
from replan.state.rules import (
    has_reports,
    is_rejected,
    left_out_of,
    missing_from,
    outcome_of,
    proposed_in,
)


@host_node("final_answer")
async def final_answer(state: EnhancedState, call: HostCall) -> EnhancedState:
    """Answer, and end the run: the answer of the feedback, a model's, or one from the results."""
    await end_early_steps(call)
    judged = state.get("current_feedback_result")
    answer = None if judged is None else judged.final_answer
    raw, missing = "", ""
    output, problem = None, ""
    is_direct = call.services.is_direct and not is_rejected(state)
    if is_direct:
        answer, output = _of_the_step(state, call)
    elif answer is None:
        answer, raw, missing = await _answered(state, call)
    if not (missing or is_direct or is_rejected(state)):
        model = call.services.models.answering
        answer, output, problem = await with_output(
            call, model, _prompt_of(state, call), answer, raw
        )
    if not is_direct:
        answer = completed(answer, state, call, _undone(state))
    outcome, limit = await _outcome_and_limit(state, call, problem, missing)
    end = await end_run(state, call, Answer(answer, output, problem), outcome, limit)
    # A person may edit the document and hand it in again: it tells what its steps were asked.
    plan = plan_of(state)
    return {**end, "current_plan": sealed(with_history(plan, state), origin(state))}


async def _outcome_and_limit(
    state: EnhancedState, call: HostCall, problem: str, missing: str
) -> tuple[Outcome, str]:
    """Return how the run ended, and at which limit.

    `problem` says why there is no output, `missing` why the model gave no answer.
    """
    plan, limit = plan_of(state), state.get("limit_reached", "")
    if call.refused is not None and not limit:
        limit = call.refused.limit
        await call.report_limit(limit, call.refused.value, call.refused.reason)
    cut = await call.report_cut() or (limit if limit in CUTS else "")
    if missing:
        cut = NO_ANSWER
        await call.report_limit(NO_ANSWER, 0, missing)
    is_told_by_host = not (missing or call.refused or call.end.words or call.services.is_direct)
    outcome: Outcome = (
        "rejected"
        if is_rejected(state)
        else outcome_of(plan, limit, is_reported=is_told_by_host and has_reports(state))
    )
    limit = limit or cut
    if outcome == "completed" and ((limit and proposed_in(state)) or cut):
        outcome = "partial"
    if outcome == "completed" and call.refused is not None:
        # All steps are done, or there are none yet; but nobody could make an answer of it.
        outcome = "partial" if plan.completed_steps else "failed"
    if outcome == "completed" and problem:
        outcome = "failed"
    return outcome, limit


def origin(state: EnhancedState) -> str:
    """The run that has the whole results of the plan; an earlier one if this one did nothing."""
    did = newest_results(state)
    return state.get("run_id", "") if did else state.get("source_run_id", "")


def generate_final_answer(state: EnhancedState) -> str:
    """The answer without a model: the results, in the order of the plan, under their steps."""
    plan = plan_of(state)
    results = newest_results(state).values()
    parts = list[str]()
    for step in plan.steps:
        own = [
            result.marked_text for result in results if result.step_id == step.id and result.text
        ]
        # What an earlier run did is in the plan alone.
        kept = [step.result] if step.status is StepStatus.COMPLETED and step.result else []
        parts += [f"## {step.id}. {step.description}\n\n{text}" for text in own or kept]
    return "\n\n".join(parts) or "No step returned a result."


def _of_the_step(state: EnhancedState, call: HostCall) -> tuple[AIMessage, JsonValue]:
    """The result of the one step of a team without a host, as the answer."""
    results = [*newest_results(state).values()]
    text = "\n\n".join(result.marked_text for result in results if result.text)
    output = results[-1].output if results and not results[-1].is_failed else None
    text = text or "".join(result.error or "" for result in results) or _undone(state)
    return AnswerStream(call.emitter).finish(text), output


def generate_rejection(state: EnhancedState) -> str:
    """The answer of a run whose plan was rejected: that, the reason, and what was done before."""
    decision = state.get("decision")
    reason = "" if decision is None else decision.reason
    text = f"The plan was rejected: {reason}" if reason else "The plan was rejected."
    if not newest_results(state):
        return f"{text}\n\nNothing was done."
    return f"{text}\n\nWhat was done before:\n\n{generate_final_answer(state)}"


async def _answered(state: EnhancedState, call: HostCall) -> tuple[AIMessage, str, str]:
    """Ask for the answer; return it, its reply, and why the model gave none.

    Without an answer of the model, the results are the answer.
    """
    if is_rejected(state):
        return AnswerStream(call.emitter).finish(generate_rejection(state)), "", ""
    shown = AnswerStream(call.emitter)
    raw, missing = "", ""
    chat, prompt_of = call.services.models.answering, _prompt_of(state, call)
    try:
        reply, budget = await call.ask_in_room(chat, prompt_of, shown)
        reading = await call.answer_in(chat, prompt_of(budget), reply, shown)
        text, raw = reading.body, reading.raw
        if text and (unread := unread_warning(state, call.services.prompts, budget)):
            await call.emitter.warn(unread)
        if not text and call.end.cut:
            text = _results_as_answer(state, f"There is no other answer: {call.end.why}.")
        elif not text:
            missing = "the model returned no answer"
    except ModelCallError as error:
        text, missing = "", error.problem
    except LimitReachedError as error:
        text = _results_as_answer(state, str(error))
    return shown.finish(text or generate_final_answer(state)), raw, missing


def _prompt_of(state: EnhancedState, call: HostCall) -> Callable[[int], list[BaseMessage]]:
    judged, prompts = state.get("current_feedback_result"), call.services.prompts

    def prompt_of(budget: int) -> list[BaseMessage]:
        missing = _undone(state)
        return build_final_answer_prompt(judged, state, prompts, missing=missing, budget=budget)

    return prompt_of


def _results_as_answer(state: EnhancedState, why: str) -> str:
    return f"{generate_final_answer(state)}\n\nThese are the results as they came. {why}"


def _undone(state: EnhancedState) -> str:
    parts = (missing_from(state), left_out_of(state), proposed_in(state))
    return "\n".join(part for part in parts if part)
