"""`user_input`: wait for a person's answers when nothing else can continue."""

from collections.abc import Collection

from langgraph.errors import GraphInterrupt
from langgraph.runtime import Runtime
from pydantic import JsonValue

from replan.base.langgraph_inside.tasks import checkpoint_of
from replan.log.run_log import RunLog
from replan.nodes.host.approvals import RepeatedAnswerError, newest_answer
from replan.nodes.host.host_call import emitter_of
from replan.nodes.host.new_settings import with_new_settings
from replan.ports.ask_user import path_of_step
from replan.specialists.services import Services
from replan.specialists.steps.answer_events import report_answer
from replan.specialists.steps.step_record import ANSWERS
from replan.state.enhanced import EnhancedState, rounds_of
from replan.state.limits import RunSettings
from replan.state.person.answers import read_answers
from replan.state.questions import Question
from replan.state.results import FIRST, ExecutionStatus, Generation
from replan.state.rules import open_questions


@with_new_settings
async def user_input(
    state: EnhancedState, runtime: Runtime[RunSettings], *, services: Services
) -> EnhancedState:
    """Take the recorded answers, else ask; each answer is on record before it is used."""
    run_id, questions, log = state.get("run_id", ""), open_questions(state), services.log
    by_key = {question.key: question for question in questions}
    noted = await log.notes(run_id, ANSWERS)
    # An answer that came just before the process was killed: LangGraph has forgotten it.
    recorded = {key: noted[ANSWERS + key] for key in by_key if ANSWERS + key in noted}
    now, asked_at = services.clock(), checkpoint_of(runtime)
    try:
        new_answers = await _ask(questions, _earlier_answers(state), log, run_id, asked_at)
    except GraphInterrupt:
        if not recorded:
            raise
        new_answers = {}
    answers = {**recorded, **new_answers}
    for key in answers.keys() - recorded.keys():
        answers[key] = await log.note(run_id, ANSWERS + key, answers[key])
    # Who goes back to this question, in a fork, answers it anew.
    changed = {key for key in recorded if answers[key] != recorded[key]}
    for key in changed:
        await log.replace(run_id, ANSWERS + key, answers[key])
    emitter = emitter_of(state, services, runtime)
    for key, answer in answers.items():
        await report_answer(by_key[key], answer, emitter, log, is_changed=key in changed)
    steps = {by_key[key].step_id for key in changed}
    return {
        "questions": {key: by_key[key].answered(answer, now) for key, answer in answers.items()},
        "generations": await _next_generations(steps, state, log) if steps else {},
        # The round that only asked is given back.
        "max_rounds": rounds_of(state) + 1,
        # Each answer may lead to a step that fails: others still wait for theirs.
        "stalls": 0,
    }


async def _next_generations(
    steps: Collection[int], state: EnhancedState, log: RunLog
) -> dict[int, Generation]:
    """The generations of steps whose record was made with other answers, so it does not count."""
    results = (await log.results(state.get("run_id", ""))).values()
    known = state.get("generations", {})
    next_generations: dict[int, Generation] = {}
    for step in steps:
        old = known.get(step, FIRST)
        settled = [result for result in results if result.step_id == step]
        done = [result for result in settled if result.status is ExecutionStatus.SUCCESS]
        next_generations[step] = Generation(
            settled=max(old.settled, len(settled)), done=max(old.done, len(done))
        )
    return next_generations


def _repeats(answer: object, old: dict[str, JsonValue]) -> bool:
    return isinstance(answer, dict) and len(answer) > 0 and old.items() >= answer.items()  # pyright: ignore[reportUnknownArgumentType]


def _earlier_answers(state: EnhancedState) -> dict[str, JsonValue]:
    questions = state.get("questions", {}).values()
    return {question.key: question.answer for question in questions if not question.is_open}


async def _ask(
    questions: tuple[Question, ...],
    earlier_answers: dict[str, JsonValue],
    log: RunLog,
    run_id: str,
    asked_at: str,
) -> dict[str, JsonValue]:
    """Ask until there is a usable answer; raises GraphInterrupt if there is none yet."""
    # Steps that run graphs may ask at once, and each graph counts its own steps from 1.
    path = path_of_step()
    shown = [question.replace(key=path + question.key) for question in questions]

    old = {path + key: answer for key, answer in earlier_answers.items()}

    def judged(answer: object) -> dict[str, JsonValue]:
        if _repeats(answer, old):
            raise RepeatedAnswerError
        answers = read_answers(answer, shown)
        return {key.removeprefix(path): answer for key, answer in answers.items()}

    def ask(problem: str, _: object) -> list[Question]:
        return [question.replace(problem=problem or question.problem) for question in shown]

    return await newest_answer(log, run_id, f"questions/{asked_at}", ask, judged)
