"""A run with all its records, from which it can be shown here or elsewhere."""

from datetime import datetime

from pydantic import JsonValue

from replan.calling.compiled import Graph
from replan.log.amounts import Spending
from replan.log.attempt_rows import LedgerEntry
from replan.log.rows import Request
from replan.plan.model import TaskPlan, Value
from replan.ports.run_book import RunRecord
from replan.ports.storage import Storage
from replan.runs.course.thread_views import ThreadView, thread_views
from replan.runs.log.event_log import RunEvent, run_event
from replan.runs.looking import seen
from replan.secrets.known import MASK
from replan.state.questions import Question
from replan.state.results import Artifact, SpecialistResult
from replan.state.usage import Usage


class WholeRun(Value):
    """A stored run, at rest or at work."""

    run_id: str
    title: str  # what it is about
    outcome: str  # its status
    started_at: datetime  # when it began
    last_seen_at: datetime  # the time of its last sign of life: now, while a process works on it
    labels: dict[str, str]  # what it is found by
    plan: TaskPlan | None  # its plan with all marks and its history; None before there is one
    answer: str  # the text of the answer; empty before there is one
    output: JsonValue  # the answer's value, where it is of a type
    limit_reached: str  # the limit that ended it, or cut its answer off; else empty
    warnings: tuple[str, ...]  # its warnings: what a person may not expect
    usage: Usage  # model calls, tokens and money of all rounds that are over
    spent: dict[str, Spending]  # what each scope of its limits was charged
    pending_questions: tuple[Question, ...]  # what it waits for
    questions: dict[str, Question]  # what its steps asked, and the answers, by key
    # Those of its steps, the newest at each specialist, whole.
    results: tuple[SpecialistResult, ...]
    ledger: tuple[LedgerEntry, ...]  # every attempt of a step
    requests: tuple[Request, ...]  # what was asked of it, by whom: answers, decisions, stops
    events: tuple[RunEvent, ...]  # what happened, in its order
    texts: dict[str, str]  # the long texts of events, by reference: those that were read
    threads: tuple[ThreadView, ...] = ()  # the status of the threads of its pipelines
    origin: str = ""  # the run with whose document it began and whose results it kept; else empty

    @property
    def artifacts(self) -> list[Artifact]:
        """The files that its steps left, each once."""
        return list({each.path: each for one in self.results for each in one.artifacts}.values())


async def whole_run(
    graph: Graph,
    storage: Storage,
    record: RunRecord,
    at: datetime,
    known: tuple[RunEvent, ...] = (),  # its first events, if they were read before
) -> WholeRun:
    """Read a run through any graph of a team with its storage: nothing is run.

    Answers that may have a secret in them are masked, as in its events.
    """
    run_id, view = record.run_id, await seen(graph, storage, record, at)
    state, answer = view.state, view.state.get("final_answer")
    recorded = (await storage.log.results(run_id)).values()
    newest = {each.key: each for each in recorded} | state.get("current_specialist_results", {})
    newest |= {each.key: each for each in view.results}
    questions: dict[str, Question] = state.get("questions", {})
    secret = {key for key, each in questions.items() if each.secret}
    new = await storage.log.events(run_id, known[-1].seq or 0 if known else 0)
    return WholeRun(
        run_id=run_id,
        title=record.title,
        outcome=view.outcome,
        started_at=record.started_at,
        last_seen_at=view.last_seen_at,
        labels=record.labels,
        plan=view.plan,
        answer="" if answer is None else answer.text,
        output=state.get("output"),
        limit_reached=state.get("limit_reached", ""),
        warnings=tuple(state.get("warnings", ())),
        usage=state.get("usage", Usage()),
        spent=dict(await storage.log.spent(run_id)),
        pending_questions=view.pending_questions,
        questions={
            key: each.replace(answer=MASK) if key in secret and not each.is_open else each
            for key, each in questions.items()
        },
        results=tuple(newest.values()),
        ledger=tuple(await storage.log.ledger(run_id)),
        requests=tuple(
            each.replace(answers={**each.answers, **dict.fromkeys(secret & {*each.answers}, MASK)})
            for each in await storage.log.requests([run_id], taken=True)
        ),
        events=(*known, *(run_event(run_id, each) for each in new)),
        texts={},
        threads=await thread_views(storage, run_id),
        origin=view.origin,
    )


def references(events: tuple[RunEvent, ...]) -> set[str]:
    """The references in events to their long texts."""
    found = set[str]()
    for event in events:
        for name, value in event.details.items():
            if name.endswith("_ref"):
                found.add(str(value))
        said = [event.details.get("reply"), *_as_list(event.details.get("prompt"))]
        found |= {str(each["ref"]) for each in said if isinstance(each, dict) and "ref" in each}
    return found


def _as_list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


async def with_texts(run: WholeRun, storage: Storage, events: tuple[RunEvent, ...]) -> WholeRun:
    """Return a run with the long texts of some of its events, of those still kept."""
    found = {ref: await storage.log.text(run.run_id, ref) for ref in references(events)}
    return run.replace(texts={ref: text for ref, text in found.items() if text is not None})
