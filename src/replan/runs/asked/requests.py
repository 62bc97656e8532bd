"""Requests of people and processes to a run: checked, put on record, handled by its owner."""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, cast

from pydantic import JsonValue
from pydantic_core import to_jsonable_python

from replan.base.errors import InputError, PlanConflictError
from replan.log.events.types import RunSteered
from replan.log.kept_events import entry_of, events_of
from replan.log.report import RunReport
from replan.log.rows import STEERS, Request
from replan.log.run_log import RunLog
from replan.nodes.host.steered_plan import is_same_work, taken_edit
from replan.plan.model import StepStatus, TaskPlan
from replan.ports.steering import OUTCOME, TOO_LATE, facts_of
from replan.runs.calling.new_or_continued import check_storable
from replan.specialists.services import Services
from replan.specialists.steps.step_record import ANSWERS
from replan.state.enhanced import EnhancedState
from replan.state.person.answers import shown_in
from replan.state.questions import Question, fingerprint_of

BEAT = 0.5  # seconds from one look at the rows of others to the next


def answer_rows(asks: Sequence[Question], answers: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Answers as they are kept: with what was asked, for the run may ask again meanwhile."""
    return {
        ask.key: {
            "answer": answers[ask.key],
            "fingerprint": ask.fingerprint,
            "is_keyed": ask.is_keyed,
        }
        for ask in asks
        if ask.key in answers
    }


def answers_in(requests: Sequence[Request], asks: Sequence[Question]) -> dict[str, JsonValue]:
    """The newest answers to exactly what is asked now."""
    shown = shown_in(asks)
    rows: dict[str, Any] = {
        key: row for request in requests for key, row in request.answers.items()
    }
    return {
        key: row["answer"]
        for key, row in rows.items()
        if key in shown and row["fingerprint"] == shown[key]
    }


def check_first_answer(request: Request, waiting: Sequence[Request]) -> None:
    """Refuse an answer if another one to exactly the same waits to be taken by the run.

    Raises:
        InputError: The other one says something else.
    """
    for earlier in waiting:
        for key in earlier.answers.keys() & request.answers.keys():
            first, row = cast("Any", earlier.answers[key]), cast("Any", request.answers[key])
            is_same = first["fingerprint"] == row["fingerprint"]
            if is_same and first["answer"] != row["answer"]:
                raise InputError(
                    f"Another answer to {key}, by {earlier.by or 'a person'}, came before this one "
                    "and counts. Look at what the run asks now."
                )


def check_same_words(request: Request, earlier: Request) -> None:
    """Refuse a request with the name of an earlier one that says something else."""
    if _words_of(request) != _words_of(earlier):
        raise _other_words(earlier)


def check_same_answers(said: str, earlier: Request) -> None:
    """Refuse answers that cannot be read any more and are not those that came under the name."""
    if earlier.kind != "answer" or earlier.said not in ("", said):
        raise _other_words(earlier)


def _other_words(earlier: Request) -> InputError:
    return InputError(f"Another {earlier.kind} has this name. Give this one a name of its own.")


def digest_of_answers(answers: object) -> str:
    """What tells answers apart as they came, whatever is asked."""
    try:
        plain = to_jsonable_python(answers, fallback=repr)
    except UnicodeEncodeError:
        # Half of a character: whoever reads it refuses it.
        plain = repr(answers)
    return sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _words_of(request: Request) -> object:
    answers = {key: cast("Any", row)["answer"] for key, row in request.answers.items()}
    return request.kind, request.text, request.version, answers


async def note_answers(request: Request, log: RunLog) -> None:
    """Record the answers to questions of steps, in case the run is killed before it reads them."""
    # LangGraph gets the others when it asks.
    for key, row in request.answers.items():
        answer = cast("Any", row)
        if answer["is_keyed"]:
            await log.note(request.run_id, ANSWERS + key, answer["answer"])


def steps_at_work(report: RunReport) -> tuple[int, ...]:
    """The steps that somebody works on."""
    # What began ahead of an edit that is not merged is in no plan yet.
    planned: Collection[int] = report.plan.by_id if report.plan else ()
    at_work = (step.step.id for step in report.of_status(StepStatus.EXECUTING))
    return tuple(step_id for step_id in at_work if step_id in planned)


def check_edit(
    edit: Request,
    report: RunReport,
    state: EnhancedState,
    services: Services | None,  # the run's team; None where only its owner has it
) -> tuple[int, ...]:
    """Refuse an edit that cannot be merged; return the steps that it waits for."""
    plan = plan_to_steer(report, is_direct=services is not None and services.is_direct)
    new = taken_edit(plan, edit, state, services, edit.at, is_at_work=report.is_held)
    at_work = steps_at_work(report)
    begun = [step_id for step_id in at_work if _differs(step_id, plan, new)]
    if begun:
        listed = ", ".join(map(str, begun))
        raise InputError(
            f"The edit changes what is at work: step {listed}. Leave it as it is, or stop the run "
            "first."
        )
    return at_work


def check_steer(
    request: Request, report: RunReport, state: EnhancedState, services: Services | None
) -> tuple[int, ...]:
    """Refuse a request that cannot be taken; return the steps that it waits for."""
    check_storable({"plan" if request.kind == "edit" else "message": request.text})
    if request.kind == "edit":
        return check_edit(request, report, state, services)
    is_direct = services is not None and services.is_direct
    _check_is_steered(report, "Begin a new one, and say it there.", is_direct=is_direct)
    if not request.text.strip():
        raise InputError("The message is empty. Write what the host should know.")
    if report.plan is not None and not report.plan.allow_dynamic_update:
        raise InputError(
            "The host must not revise the plan of this run, so a message would change nothing. "
            "Edit the plan."
        )
    return steps_at_work(report)


async def settle_missed(state: EnhancedState, log: RunLog, at: datetime) -> None:
    """Refuse edits and messages that came after the end of a run."""
    missed = await waiting_steers(state.get("run_id", ""), log)
    await _refuse_missed(missed, state.get("current_round", 0), log, at)


async def _refuse_missed(
    requests: Sequence[Request], round_number: int, log: RunLog, at: datetime
) -> None:
    """Put on record that requests came too late, unless it is told what became of them."""
    outcomes = await outcomes_of(requests, log)
    fields: dict[str, Any] = {"round": round_number, "at": at}
    fields |= {"status": "refused", "reason": TOO_LATE}
    for request in (each for each in requests if each.name not in outcomes):
        event = RunSteered(run_id=request.run_id, **fields, **facts_of(request))
        batch = f"{OUTCOME}{request.name}"
        await log.add_events(request.run_id, [entry_of(event)], batch=batch)
    await log.take_requests(requests, at)


async def waiting_steers(run_id: str, log: RunLog) -> list[Request]:
    """The edits and messages to a run that no process has marked as taken."""
    return [request for request in await log.requests([run_id]) if request.kind in STEERS]


async def outcomes_of(requests: Collection[Request], log: RunLog) -> Mapping[str, RunSteered]:
    """What became of edits and messages, by their names; those that wait are left out."""
    outcomes = dict[str, RunSteered]()
    for run_id in {request.run_id for request in requests}:
        for event in events_of(run_id, await log.events(run_id)):
            if isinstance(event, RunSteered) and event.status != "waits":
                outcomes[event.request] = event
    return outcomes


def plan_to_steer(report: RunReport, *, is_direct: bool = False) -> TaskPlan:
    """The plan of a run that can be edited.

    Raises:
        InputError: There is none.
    """
    instead = "Begin a new one, with its edited document as the plan."
    _check_is_steered(report, instead, is_direct=is_direct)
    if report.plan is None:
        raise InputError("The run has no plan yet. Repeat this once it has one.")
    return report.plan


def _check_is_steered(report: RunReport, instead: str, *, is_direct: bool) -> None:
    if is_direct:
        raise InputError("The team has no host, and does a run in one step that cannot be steered.")
    if report.is_over:
        raise InputError(f"The run is over. {instead}")
    if any(question.kind == "plan" and not question.path for question in report.pending_questions):
        raise InputError(
            "The run waits for approval of its plan. Answer that: with the edited plan, or with "
            "`reject: WHY`."
        )


def _differs(step: int, old: TaskPlan, new: TaskPlan) -> bool:
    before, after = old.step(step), new.by_id.get(step)
    return after is None or after.status is not before.status or not is_same_work(before, after)


async def refuse_second_edit(request: Request, log: RunLog) -> None:
    """Refuse an edit of a version of which another one waits, or was merged just now.

    Raises:
        InputError: One waits.
        PlanConflictError: One was merged.
    """
    if request.kind != "edit":
        return
    edits = [
        waiting
        for waiting in await log.requests([request.run_id])
        if (waiting.kind, waiting.version) == ("edit", request.version)
        and (waiting.at, waiting.name) < (request.at, request.name)
    ]
    outcomes = await outcomes_of(edits, log)
    for edit in edits:
        outcome = outcomes.get(edit.name)
        if outcome is None:
            by, version = edit.by or "a person", edit.version
            raise InputError(
                f"An edit of version {version} of the plan, by {by}, waits to be merged. Repeat "
                f"yours in version {version + 1}, which it makes."
            )
        if outcome.status == "taken":
            raise PlanConflictError(request.version, outcome.version)


def name_of_message(name: str) -> str:
    """What a message to a run is called among all requests to it, by the name that it came with."""
    return fingerprint_of("message", name) if name else ""


async def is_repeated(request: Request, log: RunLog) -> bool:
    """Whether a request is on record: it was sent before, by the same name.

    Raises:
        InputError: That one was refused, or says something else.
    """
    earlier = await log.request(request.run_id, request.name)
    if earlier is None:
        return False
    check_same_words(request, earlier)
    outcome = (await outcomes_of([request], log)).get(request.name)
    if outcome is not None and outcome.status == "refused":
        raise InputError(outcome.reason)
    if outcome is None and await log.is_taken(request.run_id, request.name):
        raise InputError(TOO_LATE)
    return True


async def refuse_if_over(request: Request, report: RunReport, log: RunLog, at: datetime) -> None:
    """Refuse a request that came when the run had ended, and that nobody will take.

    A run that took it may be over before its author looks.
    """
    if report.is_over and not report.is_held:
        newest_round = report.events[-1].round if report.events else 0
        await _refuse_missed([request], newest_round, log, at)
        outcome = (await outcomes_of([request], log))[request.name]
        if outcome.status == "refused":
            raise InputError(outcome.reason)
