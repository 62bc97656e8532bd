"""What a person can type next about a run, as commands, and what each of them does."""

import shlex
from collections.abc import Collection, Iterator

from replan.log.fold import HANDED_IN
from replan.log.labels import QUEUE, SESSION, VERSION
from replan.log.report import RunReport
from replan.log.step_reports import StepReport
from replan.plan.model import PlanStep, StepStatus
from replan.plan.order import run_order
from replan.plan.rerun import rerun_from
from replan.ports.run_book import DEFAULT, PYTHON
from replan.state.outcomes import CUTS
from replan.views.cells import counted, one_line, seconds
from replan.views.run.error_lines import repair_of
from replan.views.run.overview import money, tokens

_SHORT, _MOST_STEPS, _MOST_TOLD, _LONGEST_TASK = 8, 5, 2, 80


def next_lines(report: RunReport, option: str = "") -> list[str]:
    """The commands that continue a run, or repeat what failed; `option` names its storage.

    The command that most people want is last.
    """
    if report.outcome == "running":
        return [f"stop it with: {_command('stop', report, option)}"]
    if SESSION in report.labels:
        return _ways_of_session(report, option)
    name, is_foreign = one_line(report.team), report.team_source == PYTHON
    act = f"FILE is a team file whose name is {name}, or act in the program"
    return [
        *([f"a program began it: {act}"] if is_foreign else ()),
        *_refused_edits(report),
        *_failed_lines(report, option),
        *_ways(report, option),
    ]


def _command(name: str, report: RunReport, option: str, *words: object) -> str:
    """A command about a run; that of a program needs the file of its team to go on."""
    team = " --team FILE" if report.team_source == PYTHON and name != "stop" else ""
    return f"{' '.join(['replan', name, report.run_id[:_SHORT], *map(str, words)])}{option}{team}"


def _ways_of_session(report: RunReport, option: str) -> list[str]:
    session = f"replan chat --session {shlex.quote(report.labels[SESSION])}{option}"
    if report.team_source == PYTHON:
        return [
            f"a job, a pipeline or a program began it: {one_line(report.team)}",
            f"continue the session of a job with: {session} --job FILE",
            f"continue the session of a pipeline with: {session} --pipeline MODULE:CLASS",
        ]
    return [f"continue its session with: {session}{_file_option(report)}"]


def _refused_edits(report: RunReport) -> Iterator[str]:
    """What becomes of edits that were refused in a run that is over."""
    steered = report.fold.steered.values() if report.is_over else ()
    for event in steered:
        if (event.kind, event.status) == ("edit", "refused"):
            edit = f"the edit of version {event.based_on} by {one_line(event.by) or 'somebody'}"
            yield f"{edit} is not in the plan: write it into a plan document, and run that"


def _ways(report: RunReport, option: str) -> list[str]:
    """How a run goes on, or begins anew, apart from what is done about its failed steps."""
    resume = _command("resume", report, option)
    if report.unanswered:
        from replan.views.run.open_asks import ways_to_answer  # noqa: PLC0415 - imports LangGraph

        others = len(report.pending_questions) - len(report.unanswered)
        return ways_to_answer(report.unanswered, resume, others, is_noted=False)
    if not report.is_over:
        by = report.fold.stopped.by if report.fold.stopped else ""
        is_stopped = report.outcome == "interrupted" and not report.is_killed and by
        stopped = f"{one_line(by)} stopped it, so no program continues it by itself"
        return [
            *([stopped] if is_stopped else ()),
            *what_continues(report),
            *_worker_lines(report, option),
            f"continue with: {resume}",
        ]
    if limit_line := raised_limit(report):
        raised = f"--set {report.limit_reached}={report.larger_limit}"
        return [limit_line, *what_continues(report), f"continue with: {resume} {raised}"]
    anew = _begun_anew if report.outcome == "rejected" else _rejected_calls
    return [*anew(report, option)]


def _worker_lines(report: RunReport, option: str) -> Iterator[str]:
    """The command that begins a worker for a run that waits in a queue."""
    if VERSION in report.labels and report.is_killed:
        source, queue = report.team_source, report.labels.get(QUEUE, "")
        file = "FILE" if source in ("", DEFAULT, PYTHON) else shlex.quote(source)
        named = f" --queues {shlex.quote(queue)}" if queue else ""
        yield f"let a worker take it with: replan worker --team {file}{named}{option}"


def raised_limit(report: RunReport) -> str:
    """Which limit ended a run, and what it had used; empty where no larger one helps."""
    limit = report.limit_reached
    if not limit or limit in CUTS or not report.larger_limit:
        return ""
    used = {
        "max_cost": money(report.calls, report.currency),
        "max_tokens": tokens(report.calls),
        "max_model_calls": f"{report.calls.calls}",
        "max_seconds": seconds(report.worked),
    }.get(limit, "")
    limit_events = (
        event for event in report.fold.limits if (event.limit, event.scope) == (limit, "run")
    )
    value = [f"{event.value:g}" for event in limit_events][-1:]
    was = f"the limit {limit}{''.join(f'={each}' for each in value)} ended it"
    return f"{was}{used and f', with {used} used'}; {report.larger_limit} leaves it room"


def what_continues(report: RunReport, but: int = 0) -> list[str]:
    """What becomes of the steps of a run that continues: of those cut off, and of those to come.

    Args:
        report: The run.
        but: A step of which something else is said.
    """
    planned = [step for step in report.planned if step.step.id != but]
    cut_off = [step for step in planned if step.is_cut_off]
    lines = [
        f"step {step.step.id} was cut off, and is taken up again: "
        f"{one_line(step.step.description)}{_doubt(step.step, report)}"
        for step in cut_off[:_MOST_STEPS]
    ]
    if left := [step for step in _coming(report, done={but}) if not step.is_cut_off]:
        then = "then these" if lines else "these steps"
        asking = f"{then} run, without asking unless their team asks"
        lines.append(f"{asking}: {_named(left, report)}")
    return lines


def _doubt(step: PlanStep, report: RunReport) -> str:
    """What comes before a step is done again that was cut off."""
    if report.is_unsafe(step):
        asked = "you are asked, and say `run again` or `fail: WHY` only if it did not"
        return f"; look first whether it took effect: {asked}"
    # Which tools of a chat model are unsafe is not on record.
    return "; you are asked first if it must not happen twice"


def _named(steps: Collection[StepReport], report: RunReport) -> str:
    """Steps with their titles, and which of them must not happen twice."""
    told = [
        f"step {step.step.id}, {one_line(step.step.description)}"
        f"{' (unsafe)' if report.is_unsafe(step.step) else ''}"
        for step in steps
    ]
    more = f"; {len(told) - _MOST_STEPS} more" if len(told) > _MOST_STEPS else ""
    return f"{'; '.join(told[:_MOST_STEPS])}{more}"


def _coming(
    report: RunReport, again: Collection[int] = (), done: Collection[int] = ()
) -> list[StepReport]:
    """The open steps that nothing holds up once some are done again, and others count as done."""
    settled = (StepStatus.COMPLETED, StepStatus.SKIPPED, StepStatus.EXECUTING)
    ready = {*again, *done} | {e.step.id for e in report.planned if e.status in settled}
    found = list[StepReport]()
    for step in run_order(report.plan) if report.plan else ():
        each = report.by_id[step.id]
        if step.id in ready or each.status is not StepStatus.PENDING or each.is_asking:
            continue
        failed, coming = report.obstacles(step)
        if ready.issuperset((*failed, *coming)):
            ready.add(step.id)
            found.append(each)
    return found


def what_a_correction_does(report: RunReport, step: int, *, is_retry: bool) -> str:
    """Which run goes on if a step is done again or skipped, what it keeps, and what it runs."""
    reruns = rerun_from(report.plan, step) if is_retry and report.plan else ()
    again = [rerun.step for rerun in reruns]
    done = report.of_status(StepStatus.COMPLETED)
    kept = [each.step.id for each in done if each.step.id not in again]
    numbers = ", ".join(map(str, kept))
    keeps = f"keeps step{'' if len(kept) == 1 else 's'} {numbers}" if kept else "keeps no step"
    if len(kept) > _MOST_STEPS:
        keeps = f"keeps {counted(len(kept), 'done step')}"
    which = "a new run begins from this plan" if report.is_final else "this run goes on"
    steps = [*(report.by_id[step_id] for step_id in again)]
    steps += _coming(report, again, () if is_retry else (step,))
    without = f", without the result of step {step}" if steps and not is_retry else ""
    runs = f"runs {_named(steps, report)}{without}" if steps else "runs no step"
    skipped = None if is_retry else report.by_id.get(step)
    is_in_doubt = skipped and skipped.is_cut_off and report.is_unsafe(skipped.step)
    doubt = f"; step {step} may have taken effect already" if is_in_doubt else ""
    return f"{which}, {keeps}, and {runs}{doubt}"


def _failed_lines(report: RunReport, option: str) -> Iterator[str]:
    """The commands about the steps that failed; of the first ones, what each of them does."""
    failed = report.of_status(StepStatus.FAILED)
    commands = [*corrections(report, option)]
    for place, step in enumerate(failed[:_MOST_STEPS]):
        if repair := repair_of(step):
            yield f"step {step.step.id} failed because {repair.why}; {repair.fix}"
        for command in commands[2 * place : 2 * place + 2]:
            if place < _MOST_TOLD:
                is_retry = command is commands[2 * place]
                does = what_a_correction_does(report, step.step.id, is_retry=is_retry)
                yield f"{'retry' if is_retry else 'skip'}: {does}"
            yield command
    yield from commands[2 * min(len(failed), _MOST_STEPS) :]


def corrections(report: RunReport, option: str = "") -> Iterator[str]:
    """The commands that repeat a failed step, or leave it out."""
    failed = report.of_status(StepStatus.FAILED)
    for step_report in failed[:_MOST_STEPS]:
        step, repair = step_report.step.id, repair_of(step_report)
        more = f" {repair.option}".rstrip() if repair else ""
        after = "then do" if repair and not more else "do"
        yield f"{after} step {step} again with: {_command('retry', report, option, step)}{more}"
        yield f"leave it out with: {_command('skip', report, option, step)}"
    if len(failed) > _MOST_STEPS:
        yield f"{len(failed) - _MOST_STEPS} more failed: write their numbers instead"


def _rejected_calls(report: RunReport, option: str) -> Iterator[str]:
    """The commands that ask anew about calls which a person did not allow."""
    done = report.of_status(StepStatus.COMPLETED)
    for step in (each.step.id for each in done if report.anomalies_of(each).refused):
        what = f"step {step} ended without a call that was rejected"
        does = what_a_correction_does(report, step, is_retry=True)
        yield f"{what}; to be asked anew, do it again: {does}"
        yield f"do it again with: {_command('retry', report, option, step)}"


def _begun_anew(report: RunReport, option: str) -> Iterator[str]:
    """The command that asks for the same in a new run: a rejected plan is not taken up again."""
    title = one_line(report.title)
    task = shlex.quote(title) if 0 < len(title) <= _LONGEST_TASK else "TASK"
    firsts = (revision.by for revision in report.revisions if revision.is_first)
    task = "PLAN.md" if any(by.startswith(HANDED_IN) for by in firsts) else task
    team = " --team FILE" if report.team_source == PYTHON else _file_option(report)
    yield "a rejected plan is not run; write another one and name its file, or ask anew"
    yield f"begin anew with: replan run {task}{team}{option}"


def _file_option(report: RunReport) -> str:
    source = report.team_source
    return "" if source in ("", DEFAULT) else f" --team {shlex.quote(source)}"
