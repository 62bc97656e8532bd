"""The schemas of answers about runs and teams."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal

from pydantic import JsonValue

from replan.log.events.types import Event
from replan.log.period import By, Sums
from replan.log.report import RunReport
from replan.log.step_reports import StepReport
from replan.plan.model import StepStatus
from replan.ports.run_book import RunOutcome, RunRecord
from replan.runs.asked.pending import PendingQuestion
from replan.runs.team_on_record import team_name
from replan.runs.usage import Usage
from replan.server.bodies import ApiModel
from replan.state.limits import RunSettings
from replan.views.run.evidence import Evidence, evidence_of


class Step(ApiModel):
    """One step of a plan.

    Attributes:
        id: Its number.
        description: Its line.
        specialist: The specialist that does it; empty until one is chosen.
        status: `running`, `waiting` for a person, `pending`, or how it ended.
        result: The beginning of its result.
        feedback: Why it failed or was skipped.
        before_plan: Whether it began before the plan is complete that will have it.
    """

    id: int
    description: str
    specialist: str
    status: str
    result: str
    feedback: str
    before_plan: bool = False


class Run(ApiModel):
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
        plan_version: The version of its plan, which an edit names; 0 if there is none.
        pending_questions: What it waits for.
        evidence: What a person decides each of them on, by its key.
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
    plan_version: int
    pending_questions: tuple[PendingQuestion, ...]
    evidence: Mapping[str, Evidence]
    answer: str
    output: JsonValue
    limit_reached: str
    warnings: tuple[str, ...]
    origin: str
    usage: Usage

    @classmethod
    def of(cls, report: RunReport, texts: Mapping[str, str] = MappingProxyType({})) -> "Run":
        """Select what a client sees of a run; `texts` are long texts of its events."""
        shown = cls.model_fields.keys() & RunReport.model_fields.keys()
        return cls(
            **_selected(report, *shown - {"steps", "plan", "pending_questions", "usage"}),
            reason=report.reason,
            steps=tuple(map(_step, report.planned)),
            plan="" if report.plan is None else report.plan.content,
            plan_version=0 if report.plan is None else report.plan.version,
            pending_questions=tuple(map(PendingQuestion.of, report.pending_questions)),
            evidence={ask.key: evidence_of(ask, report, texts) for ask in report.pending_questions},
            usage=Usage.of(report.calls, report.currency),
        )


def _selected(value: object, *names: str) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def _step(report: StepReport) -> Step:
    step_fields = _selected(report.step, "id", "description", "result", "feedback")
    # What began before its plan is known by who does it.
    specialist = report.step.assigned_to or "".join(report.specialists[:1])
    return Step(
        **step_fields, specialist=specialist, status=report.status_text, before_plan=report.is_early
    )


class RunSummary(ApiModel):
    """A run in a list.

    Attributes:
        run_id: The run.
        team: Its team.
        title: What it is about.
        outcome: Its status.
        started_at: When it began.
        updated_at: When it began to be so.
        seconds: From its beginning to its end, or its last sign of life.
        labels: What it is found by.
        steps_done: The steps that are done.
        steps_failed: The steps that failed.
        steps: All steps of its plan.
        usage: What its calls of models took.
    """

    run_id: str
    team: str
    title: str
    outcome: RunOutcome
    started_at: datetime
    updated_at: datetime
    seconds: float
    labels: Mapping[str, str]
    steps_done: int
    steps_failed: int
    steps: int
    usage: Usage

    @classmethod
    def of(cls, record: RunRecord, report: RunReport) -> "RunSummary":
        """Select what a list shows of a run."""
        done, steps = report.progress
        return cls(
            **_selected(record, "run_id", "title", "started_at", "updated_at", "labels"),
            **_selected(report, "outcome", "seconds"),
            team=team_name(record),
            steps_done=done,
            steps_failed=report.count(StepStatus.FAILED),
            steps=steps,
            usage=Usage.of(report.calls, report.currency),
        )


class RunPage(ApiModel):
    """A page of a list of runs.

    Attributes:
        runs: The runs, the newest first.
        next: What `cursor` has to be for the next page; null if there is none.
    """

    runs: tuple[RunSummary, ...]
    next: str | None


class Stats(ApiModel):
    """What the runs of a period took, added up.

    Attributes:
        by: What they are added up by.
        sums: One sum for each day, team, specialist, tool or model.
        has_more: Whether older runs of the period were left out.
    """

    by: By
    sums: tuple[Sums, ...]
    has_more: bool


class EventPage(ApiModel):
    """Some events of a run.

    Attributes:
        events: The events, in their order.
        next: What `after` has to be for the next ones.
    """

    events: tuple[Event, ...]
    next: int


class Text(ApiModel):
    """A long text of an event.

    Attributes:
        ref: Its reference.
        text: The text.
    """

    ref: str
    text: str


class Specialist(ApiModel):
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


class Team(ApiModel):
    """A team.

    Attributes:
        name: Its name.
        specialists: Its members.
        settings: What its runs may do, where a request does not tighten it.
        answer_schema: The JSON schema of its answers, if they are of a type.
        client_overrides: Settings and limits that a request may loosen, too.
    """

    name: str
    specialists: tuple[Specialist, ...]
    settings: RunSettings
    answer_schema: JsonValue
    client_overrides: tuple[str, ...]


class TeamList(ApiModel):
    """The teams of the server.

    Attributes:
        teams: The teams, in the order in which they were named.
    """

    teams: tuple[Team, ...]


class Health(ApiModel):
    """Whether the server works.

    Attributes:
        status: Always `ok`; what does not work is a problem.
    """

    status: Literal["ok"] = "ok"
