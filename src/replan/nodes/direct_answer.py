"""`direct_answer`: answer a simple request, with the answer from `think` if there is one."""

from langchain_core.messages import AIMessage, BaseMessage

from replan.base.errors import LimitReachedError
from replan.log.transcript import Transcript
from replan.models.reply_end import refusal_in, refused
from replan.nodes.host.answer import Answer, completed, end_run, with_output
from replan.nodes.host.host_call import HostCall
from replan.nodes.host.new_settings import host_node
from replan.nodes.host.reply_parts import AnswerStream
from replan.ports.run_context import use, using
from replan.prompts.host import build_direct_answer_prompt
from replan.state.enhanced import EnhancedState, settings_of
from replan.state.outcomes import CUTS, Outcome, TaskComplexity
from replan.state.results import ThinkingResult


@host_node("direct_answer")
async def direct_answer(state: EnhancedState, call: HostCall) -> EnhancedState:
    """Answer, and end the run."""
    services = call.services
    answer, outcome, limit = state.get("final_answer"), "answered", state.get("limit_reached", "")
    raw = ""
    if answer is None:
        use(facts=services.facts(settings_of(state), call.runtime.store))
        answer, raw, outcome, limit = await _answered(call, _prompt(state, call))
    answer, output, problem = (
        await with_output(
            call, call.services.models.answering, lambda _: _prompt(state, call), answer, raw
        )
        if outcome == "answered"
        else Answer(answer)
    )
    if refusal_in(answer) or problem:
        outcome = "failed"
    elif limit in CUTS and outcome == "answered":
        outcome = "partial"
    last = Answer(completed(answer, state, call), output, problem)
    return {**await end_run(state, call, last, outcome, limit), "is_simple_task": True}


def _prompt(state: EnhancedState, call: HostCall) -> list[BaseMessage]:
    thinking = state.get("current_thinking_result") or ThinkingResult(
        thought="", complexity=TaskComplexity.SIMPLE, timestamp=call.services.clock()
    )
    return build_direct_answer_prompt(thinking, state, call.services.prompts)


async def _answered(
    call: HostCall, prompt: list[BaseMessage]
) -> tuple[AIMessage, str, Outcome, str]:
    """Request the answer; return it, its reply, the outcome of the run, and what cut it off."""
    services = call.services
    shown = AnswerStream(call.emitter)
    record = Transcript(services.log, call.run_id, f"direct_answer/{call.run_id}", "tell")
    try:
        with using(make_transcript=lambda: record, folders=services.folders):
            reply = await call.ask(services.models.direct, prompt, shown)
        # Not with the tools again: what was recorded of them is of the first question.
        reading = await call.answer_in(services.models.answering, prompt, reply, shown)
    except LimitReachedError as error:
        await call.report_limit(error.limit, error.value, error.reason)
        return shown.finish(f"There is no answer. {error}"), "", "failed", error.limit
    text = reading.body
    if text and call.end.words:
        return refused(shown.finish(text), call.end.words), reading.raw, "failed", ""
    limit = await call.report_cut()
    if text:
        return shown.finish(text), reading.raw, "answered", limit
    did = "repeated its instructions" if reading.wrong else "returned an empty reply"
    why = call.end.why or f"the model {did}"
    return shown.finish(f"There is no answer: {why}."), "", "failed", limit
