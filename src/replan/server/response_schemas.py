"""The schemas of answers about runs and teams."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import JsonValue

from replan.ports.run_book import RunOutcome
from replan.runs.log.run_event import RunEvent
from replan.runs.looking import RunView
from replan.state.limits import RunSettings
from replan.state.questions import RESPONSES, Question
from replan.values import Value

TEAM, TENANT, TOKEN, USER, SESSION = "team", "tenant", "token", "user", "session"
OWN_LABELS = (TEAM, TENANT, TOKEN, USER, SESSION, "version", "queue")
"""The labels that the server sets on its runs."""


class PendingQuestion(Value):
    """One thing that a run waits for.

    Attributes:
        key: The name that an answer uses.
        kind: `question`, `approval` of a tool's call, `unknown_outcome`, or `plan`.
        text: The question; for a plan, its document.
        step_id: The step that asks; 0 if the host does.
        who: The step and the specialist that ask; empty if the host does.
        details: For a tool's call, the tool and its arguments.
        remarks: For a plan, its reason and its changes.
        problem: Why the last answer could not be used.
        draft: For a plan, the changed document that could not be used.
        fingerprint: Names exactly this; an answer may carry it.
        response_schema: The JSON schema of an answer.
    """

    key: str
    kind: Literal["question", "approval", "unknown_outcome", "plan"]
    text: str
    step_id: int
    who: str
    details: JsonValue
    remarks: tuple[str, ...]
    problem: str
    draft: str
    fingerprint: str
    response_schema: JsonValue

    @classmethod
    def of(cls, ask: Question) -> "PendingQuestion":
        """Report what is asked."""
        names = cls.model_fields.keys() - {"response_schema"}
        fields: dict[str, Any] = {name: getattr(ask, name) for name in names}
        return cls(**fields, response_schema=RESPONSES[ask.kind])


class Step(Value):
    """One step of a plan.

    Attributes:
        id: Its number.
        description: Its line.
        specialist: The specialist that does it; empty until one is chosen.
        status: `running`, `waiting` for a person, `pending`, or how it ended.
        result: The beginning of its result.
        feedback: Why it failed or was skipped.
    """

    id: int
    description: str
    specialist: str
    status: str
    result: str
    feedback: str


class Usage(Value):
    """What the calls of models took until now.

    Attributes:
        calls: The calls that came to an end.
        tokens: Tokens in and out.
        cost: Money in the currency of the prices; null where a price is not known.
        unfinished_calls: Calls that continue, or were cut off.
    """

    calls: int
    tokens: int
    cost: float | None
    unfinished_calls: int


class Run(Value):
    """A run as it is.

    Attributes:
        run_id: The run.
        team: Its team.
        title: What it is about.
        outcome: Its status.
        reason: Why it ended or rests, in words.
        started_at: When it began.
        last_seen_at: The time of its last sign of life.
        labels: What it is found by.
        steps: The steps of its plan.
        plan: The document of its plan; empty if there is none.
        pending_questions: What it waits for.
        answer: The text of its answer; empty before there is one.
        output: The answer as a value of the team's type, if it has one.
        limit_reached: The limit that ended it; else empty.
        warnings: What was unexpected, one sentence each.
        origin: The run with whose document it began; else empty.
        usage: What its calls of models took.
    """

    run_id: str
    team: str
    title: str
    outcome: RunOutcome
    reason: str
    started_at: datetime
    last_seen_at: datetime
    labels: Mapping[str, str]
    steps: tuple[Step, ...]
    plan: str
    pending_questions: tuple[PendingQuestion, ...]
    answer: str
    output: JsonValue
    limit_reached: str
    warnings: tuple[str, ...]
    origin: str
    usage: Usage

    @classmethod
    def of(cls, view: RunView) -> "Run":
        """Return the status of a run."""
        record, state, usage = view.record, view.state, view.usage
        answer, outcome = state.get("final_answer"), view.outcome
        fields: dict[str, Any] = {
            "outcome": outcome,
            "pending_questions": tuple(PendingQuestion.of(ask) for ask in view.pending_questions),
            "output": state.get("output"),
        }
        return cls(
            run_id=record.run_id,
            team=record.labels.get(TEAM, ""),
            title=record.title,
            reason=view.reason,
            started_at=record.started_at,
            last_seen_at=view.last_seen_at,
            labels=record.labels,
            steps=_steps_of(view),
            plan="" if view.plan is None else view.plan.content,
            answer="" if answer is None else answer.text,
            limit_reached=state.get("limit_reached", ""),
            warnings=tuple(state.get("warnings", ())),
            origin=view.origin,
            usage=Usage(
                calls=usage.number,
                tokens=usage.tokens,
                cost=usage.cost,
                unfinished_calls=usage.unfinished,
            ),
            **fields,
        )


def _steps_of(view: RunView) -> tuple[Step, ...]:
    status = view.steps
    return tuple(
        Step(
            id=step.id,
            description=step.description,
            specialist=step.assigned_to,
            status=status[step.id],
            result=step.result,
            feedback=step.feedback,
        )
        for step in (view.plan.steps if view.plan else ())
    )


class RunSummary(Value):
    """A run in a list.

    Attributes:
        run_id: The run.
        team: Its team.
        title: What it is about.
        outcome: Its status.
        started_at: When it began.
        updated_at: When it began to be so.
        labels: What it is found by.
    """

    run_id: str
    team: str
    title: str
    outcome: RunOutcome
    started_at: datetime
    updated_at: datetime
    labels: Mapping[str, str]


class RunPage(Value):
    """A page of a list of runs.

    Attributes:
        runs: The runs, the newest first.
        next: What `cursor` has to be for the next page; null if there is none.
    """

    runs: tuple[RunSummary, ...]
    next: str | None


class EventPage(Value):
    """Some events of a run.

    Attributes:
        events: The events, in their order.
        next: What `after` has to be for the next ones.
    """

    events: tuple[RunEvent, ...]
    next: int


class Text(Value):
    """A long text of an event.

    Attributes:
        ref: Its reference.
        text: The text.
    """

    ref: str
    text: str


class Specialist(Value):
    """A member of a team.

    Attributes:
        name: Who it is.
        intended_use: When it is chosen.
        effects: What doing its work twice would do: `pure`, `keyed` or `unsafe`.
        result_schema: The JSON schema of its results, if they are of a type.
    """

    name: str
    intended_use: str
    effects: str
    result_schema: JsonValue


class Team(Value):
    """A team.

    Attributes:
        name: Its name.
        specialists: Its members.
        settings: What its runs may do, where a request does not tighten it.
        answer_schema: The JSON schema of its answers, if they are of a type.
        open_to_clients: Settings and limits that a request may loosen, too.
    """

    name: str
    specialists: tuple[Specialist, ...]
    settings: RunSettings
    answer_schema: JsonValue
    open_to_clients: tuple[str, ...]


class TeamList(Value):
    """The teams of the server.

    Attributes:
        teams: The teams, in the order in which they were named.
    """

    teams: tuple[Team, ...]


class Health(Value):
    """Whether the server works.

    Attributes:
        status: Always `ok`; what does not work is a problem.
    """

    status: Literal["ok"] = "ok"
