"""The prompts of the host: one function for each of its calls, which returns messages.

A prompt has two parts. The system message tells what to do: it can be replaced by configuration.
The data (summary, knowledge, request, plan, results) is marked, is in one message of the user's,
and is ours.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
)

from replan.plan.markdown.rendering import render_for_model
from replan.plan.model import PlanStep, TaskPlan
from replan.plan.option_table import PROMPTED
from replan.prompts.sections import (
    KEEP_MARKS,
    Call,
    Caller,
    conversation_text,
    data_message,
    instructions_in,
    knowledge_section,
    request_sections,
    section,
    summary_section,
    system_message,
    with_data,
    within_budget,
)
from replan.prompts.templates import load, render
from replan.state.conversation.conversation import (
    MemoryPolicy,
    Seen,
    resolved,
    shortened,
    split_at_request,
    visible_messages,
)
from replan.state.enhanced import EnhancedState, plan_of, settings_of
from replan.state.options import MemoryOptions
from replan.state.results import (
    CollectedResults,
    ExecutionStatus,
    FeedbackResult,
    SpecialistResult,
    ThinkingResult,
    newest_results,
)
from replan.state.rules import can_be_answer
from replan.state.team import SpecialistCard

RESULT_BUDGET = 12_000
"""Characters of one result in a prompt of the host."""

RESULTS_BUDGET = 120_000
"""Characters of all results in a prompt of the host; many long ones share it."""

LEAST_RESULT = 100
"""Characters of a result without which it is not worth its place; the last ones are left out."""

_CONFIDENCE = {ExecutionStatus.SUCCESS: 1.0, ExecutionStatus.FAILED: 0.0}
"""The confidence in a result that goes without saying, by its status."""

_RUN_ENDS = "The run ends now. Give the best answer there is, and say what is missing."
_MOST_NAMED = 20
_AS_BUILT_IN = MemoryOptions()


@dataclass(frozen=True, kw_only=True)
class HostPrompts:
    """The parts of the host's prompts; an empty text means the built-in one."""

    team: tuple[SpecialistCard, ...]
    system: str = ""  # precedes every prompt of the host
    thinking: str = ""  # in place of the thinking prompt
    planning: str = ""  # in place of the planning and the plan update prompt
    reflection: str = ""  # in place of the feedback prompt
    plan_template: str = ""  # the shape of a plan
    merged_planning: bool = True  # whether thinking and feedback carry the plan as their body
    merged_answer: bool = True  # whether thinking carries the answer of a simple request
    merged_final_answer: bool = True  # whether feedback carries the final answer
    remembers: bool = False  # whether direct answers have the tools for facts
    output: str = ""  # what an answer has to be, where a program reads it
    as_json: frozenset[Caller] = frozenset()  # whose replies are JSON, as the provider enforces
    foresees: bool = False  # whether a plan may name the step whose result will be the answer
    memory: MemoryOptions = _AS_BUILT_IN  # what the host sees of the conversation

    @cached_property
    def team_section(self) -> str:
        """The cards of the team, as data: the same in all prompts."""
        return section("team", "\n".join(map(_card, self.team)))

    def memory_in(self, state: EnhancedState) -> MemoryPolicy:
        """What it sees of the conversation in a run."""
        return resolved(self.memory, settings_of(state).memory)

    def visible_messages(self, state: EnhancedState) -> Seen:
        """The conversation of a run, as it sees it."""
        return visible_messages(state, self.memory_in(state))


def build_thinking_prompt(seen: Seen, state: EnhancedState, host: HostPrompts) -> list[BaseMessage]:
    """Ask for a judgement of the last request, and with it for the answer or the plan."""
    bodies = [f"{_answer_body(host)} if simple"] * host.merged_answer
    bodies += ["the plan otherwise"] * host.merged_planning
    body = f", then {', or '.join(bodies)}:" if bodies else " alone:"
    system = _system(
        "think",
        host,
        seen,
        *_about_team(state, host, host.thinking, has_plan=host.merged_planning),
        host.thinking or load("thinking"),
        load("remembering") if host.remembers else "",
        render(load("thinking_format"), body=body),
        load("foreseen") if _may_foresee(host) else "",
        host.output if host.merged_answer else "",
    )
    document = state.get("previous_plan", "")
    previous_plan = document and f"{load('unfinished')}\n{section('plan', document)}"
    return [system, *_conversation(seen, _knowledge(state), previous_plan)]


def _may_foresee(host: HostPrompts) -> bool:
    return host.foresees and host.merged_planning and "think" not in host.as_json


def build_direct_answer_prompt(
    thinking_result: ThinkingResult, state: EnhancedState, host: HostPrompts
) -> list[BaseMessage]:
    thought = section("feedback", thinking_result.reasoning)
    judgement = f"Your judgement so far, as data:\n{thought}" if thinking_result.reasoning else ""
    seen = host.visible_messages(state)
    system = _system("direct_answer", host, seen, load("direct_answer"), host.output)
    return [system, *_conversation(seen, _knowledge(state), judgement)]


def build_planning_prompt(
    thinking_result: ThinkingResult, state: EnhancedState, host: HostPrompts
) -> list[BaseMessage]:
    thought = thinking_result.reasoning and section("feedback", thinking_result.reasoning)
    known, task = _about_team(state, host, host.planning), host.planning or load("planning")
    seen = host.visible_messages(state)
    data = (summary_section(seen.summary), *request_sections(seen.messages), thought)
    return [_system("plan_creation", host, seen, *known, task), data_message(*data)]


def build_feedback_prompt(
    collected_results: CollectedResults,
    state: EnhancedState,
    host: HostPrompts,
    *,
    missing: str,
    said: str = "",
    budget: int = RESULTS_BUDGET,
) -> list[BaseMessage]:
    """Ask for a verdict with the answer or a revision.

    `missing` is the reason to end, and `said` what the user said since the last verdict.
    """
    by_reference = "" if "feedback" in host.as_json else _reference(state)
    answer = f"{_answer_body(host)}.{by_reference}" if host.merged_final_answer else "nothing."
    if missing:
        known = ("" if host.reflection else load("host"),)
        reply_format = render(load("closing_format"), answer_body=answer)
    else:
        known = _about_team(state, host, host.reflection, has_plan=host.merged_planning)
        revision = _revision_body(plan_of(state)) if host.merged_planning else "nothing."
        if not plan_of(state).allow_dynamic_update:
            revision = f"nothing. {load('fixed_plan')}"
        reply_format = render(load("feedback_format"), answer_body=answer, revision_body=revision)
        reply_format += f"\n\n{load('said')}" if said else ""
    output = host.output if host.merged_final_answer else ""
    task = (*known, host.reflection or load("feedback"), reply_format, output)
    seen = host.visible_messages(state)
    data = _data(state, seen, collected_results, said=said, missing=missing, budget=budget)
    return [_system("feedback", host, seen, *task), data]


def build_plan_update_prompt(
    feedback_result: FeedbackResult, state: EnhancedState, host: HostPrompts
) -> list[BaseMessage]:
    """Ask for the whole revised plan document."""
    revise = render(load("plan_update"), marks=load("marks"))
    task = (*_about_team(state, host, host.planning), host.planning, revise)
    seen = host.visible_messages(state)
    system = _system("plan_update", host, seen, *task)
    return [system, _data(state, seen, feedback=feedback_result)]


def build_final_answer_prompt(
    feedback_result: FeedbackResult | None,
    state: EnhancedState,
    host: HostPrompts,
    *,
    missing: str,
    budget: int = RESULTS_BUDGET,
) -> list[BaseMessage]:
    task = (load("final_answer"), host.output)
    seen = host.visible_messages(state)
    system = _system("final_answer", host, seen, *task)
    return [system, _data(state, seen, feedback=feedback_result, missing=missing, budget=budget)]


def request_messages(state: EnhancedState) -> tuple[AnyMessage, ...]:
    """The messages of this run's request: all after the last answer."""
    messages = state.get("messages", [])
    return tuple(split_at_request(messages)[1] or messages[-1:])


def _system(node: Caller, host: HostPrompts, seen: Seen, *parts: str) -> SystemMessage:
    """What to do, with the instructions that the caller put into the conversation."""
    as_json = load("as_json") if node in host.as_json else ""
    parts = (host.system, *parts, instructions_in(seen.messages), as_json)
    return system_message(Call(node=node), *parts)


def _answer_body(host: HostPrompts) -> str:
    return f"the whole answer ({'one JSON value' if host.output else 'Markdown'})"


def _revision_body(plan: TaskPlan) -> str:
    """The plan that a revision has; marks that no step of the plan needs are not explained."""
    if all(step.is_finished for step in plan.steps):
        return "the whole revised plan; `[x]` stays."
    return f"the whole revised plan, or nothing if the old one stays. {load('marks')}"


def _reference(state: EnhancedState) -> str:
    """The offer to name a step instead of writing its result again, where there is one."""
    steps, results = plan_of(state).by_id, newest_results(state).values()
    named = [result.step_id for result in results if can_be_answer(result, steps)]
    return f" {render(load('by_reference'), step=max(named))}" if named else ""


def _about_team(
    state: EnhancedState, host: HostPrompts, replaced: str, *, has_plan: bool = True
) -> tuple[str, ...]:
    """What the host is told in all calls about plans, at the beginning because of prompt caches."""
    settings = state.get("settings")
    max_steps = settings.limits.max_steps if settings else 100
    plan_format = _plan_format(host.plan_template, max_steps) if has_plan else ""
    return ("" if replaced else load("host"), plan_format, host.team_section)


@lru_cache(maxsize=64)
def _plan_format(template: str, max_steps: int) -> str:
    return render(
        load("plan_format"),
        plan_template=template or load("plan_template"),
        options=PROMPTED,
        max_steps=max_steps,
    )


def _card(card: SpecialistCard) -> str:
    capabilities = f" Capabilities: {'; '.join(card.capabilities)}" if card.capabilities else ""
    return f"- @{card.name}: {card.intended_use}{capabilities}"


def _knowledge(state: EnhancedState) -> str:
    found = state.get("knowledge")
    return "" if found is None else knowledge_section(found.text)


def _conversation(seen: Seen, *data: str) -> list[AnyMessage]:
    """The conversation as turns, with marked data in the message of the request."""
    said = [message for message in seen.messages if message.type != "system"]
    return with_data(said, summary_section(seen.summary), *data)


def _data(  # noqa: PLR0913 - each is a part of the data
    state: EnhancedState,
    seen: Seen,
    collected: CollectedResults | None = None,
    *,
    feedback: FeedbackResult | None = None,
    said: str = "",
    missing: str = "",
    budget: int = RESULTS_BUDGET,
) -> HumanMessage:
    plan = plan_of(state)
    steps = plan.by_id
    shown, left_out, each = _results(state, collected, budget)
    judged = () if feedback is None else (feedback.feedback, feedback.plan_update_suggestion)
    # What stays the same from round to round comes first, because of prompt caches.
    return data_message(
        summary_section(seen.summary),
        *request_sections(seen.messages, earlier_budget=budget, budget=budget),
        *[_result(result, steps.get(result.step_id), each) for result in shown],
        f"[… {len(left_out)} more results left out]" if left_out else "",
        KEEP_MARKS if any(result.sources for result in shown) else "",
        section("plan", within_budget(_judged_plan(plan, shown), budget)),
        section("feedback", "\n".join(filter(None, judged))) if judged else "",
        said and section("said", within_budget(said, budget)),
        missing and section("missing", within_budget(missing, budget)),
        _RUN_ENDS if missing else "",
    )


def _judged_plan(plan: TaskPlan, shown: Sequence[SpecialistResult]) -> str:
    """The plan without what its reader does not need: briefs of done steps, and shown failures."""
    told = {result.step_id for result in shown if result.error}
    steps = (
        step.model_copy(update={"brief": "", "parameters": {}, "result": ""})
        if step.is_finished
        else step.model_copy(update={"feedback": ""})
        if step.id in told
        else step
        for step in plan.steps
    )
    return render_for_model(plan.model_copy(update={"steps": tuple(steps)})).strip()


def _results(
    state: EnhancedState, collected: CollectedResults | None, budget: int
) -> tuple[list[SpecialistResult], list[SpecialistResult], int]:
    """The results that a prompt has room for, those that it leaves out, and the room of each."""
    digest = {} if collected is None else collected.results
    kept = state.get("carried_results", {})
    results = kept | digest | newest_results(state)
    ordered = _in_order(results, plan_of(state))
    most = max(1, budget // LEAST_RESULT)
    shown, left_out = ordered[:most], ordered[most:]
    return shown, left_out, min(RESULT_BUDGET, budget // max(1, len(shown)))


def unread_warning(
    state: EnhancedState, host: HostPrompts, budget: int, collected: CollectedResults | None = None
) -> str:
    """Describe what an answer was made without because its prompt had no room; else empty."""
    shown, left_out, characters_each = _results(state, collected, budget)
    cut = [result for result in shown if len(result.marked_text or result.error) > characters_each]
    whole = request_sections(visible := host.visible_messages(state).messages)
    is_whole = max(map(len, whole)) <= budget or whole == request_sections(
        visible, earlier_budget=budget, budget=budget
    )
    parts = (
        f"without the result of {_steps_of(left_out)}" if left_out else "",
        f"with {characters_each} characters of the result of {_steps_of(cut)}" if cut else "",
        "" if is_whole else "with a part of what was said before and asked",
    )
    missing = ", ".join(part for part in parts if part)
    return missing and f"The answer was made {missing}: there was no room for more."


def _steps_of(results: Sequence[SpecialistResult]) -> str:
    ids = list(dict.fromkeys(str(result.step_id) for result in results))
    more = f" and {len(ids) - _MOST_NAMED} more" if len(ids) > _MOST_NAMED else ""
    return f"step{'s' if len(ids) > 1 else ''} {', '.join(ids[:_MOST_NAMED])}{more}"


def _in_order(results: dict[str, SpecialistResult], plan: TaskPlan) -> list[SpecialistResult]:
    """The results by round, then by the plan; of earlier steps, the excerpt in the document."""
    place, known = {step.id: at for at, step in enumerate(plan.steps)}, [*results.values()]
    found = {result.step_id for result in known}
    known += [
        SpecialistResult(
            step_id=step.id, specialist_name=step.assigned_to, result=AIMessage(step.result)
        )
        for step in plan.steps
        if step.result and step.id not in found
    ]
    ordered = [result for result in known if result.step_id in place]
    return sorted(ordered, key=lambda result: (result.round, place[result.step_id]))


def _result(result: SpecialistResult, step: PlanStep | None, budget: int) -> str:
    text = within_budget(result.marked_text or result.error, budget)
    if result.text and result.error:
        text += f"\n\nError: {result.error}"
    if result.artifacts:
        text += "\n\nFiles: " + ", ".join(artifact.path for artifact in result.artifacts)
    return section("result", text, step=result.step_id, **_beside_plan(result, step))


def _beside_plan(result: SpecialistResult, step: PlanStep | None) -> dict[str, object]:
    """What to say about a result that the plan beside it does not say already.

    The line of its step names the specialist. A result is a success if no status stands there.
    """
    status = result.status
    is_named = step is not None and step.specialists == (result.specialist_name,)
    is_plain = result.confidence == _CONFIDENCE.get(status)
    said = {
        "specialist": not is_named and result.specialist_name,
        "status": status is not ExecutionStatus.SUCCESS and status.value,
        "confidence": not is_plain and f"{result.confidence:g}",
        "seconds": int(result.duration),
        "attempts": result.retry_count and result.retry_count + 1,
        "wants": result.replan_needed and "a revised plan",
    }
    return {name: value for name, value in said.items() if value}


def build_summary_prompt(
    before: str, messages: Sequence[AnyMessage], host: HostPrompts, *, max_tokens: int
) -> list[BaseMessage]:
    """Ask for one summary of the summary so far and the messages that come after it."""
    asked = render(load("summary"), max_tokens=max_tokens)
    said = [shortened(message) for message in messages]
    data = (before and section("memory", before), section("conversation", conversation_text(said)))
    system = system_message(Call(node="memory_summary"), host.system, asked)
    return [system, data_message(*data)]
