"""When the attempts of a step began and ended, as far as anybody knows."""

from dataclasses import dataclass
from datetime import datetime

from replan.runs.course.attempts import AttemptView
from replan.runs.course.story import StepStory, Story


@dataclass(frozen=True, kw_only=True)
class Span:
    """The time of an attempt; of one that asked a person, until the step was continued."""

    began: datetime
    ended: datetime
    outcome: str  # that of the attempt; `running` where it continues
    told: str  # it in words
    is_known: bool  # whether anybody knows its end
    asked_at: datetime | None  # when it asked a person, if it did
    specialist: str
    number: int  # the attempt


def spans_of(step: StepStory, story: Story) -> list[Span]:
    """Return the times of the attempts of a step, in the order in which they began."""
    return [_span(at, step, story) for at in range(len(step.attempts))]


def _span(at: int, step: StepStory, story: Story) -> Span:
    attempt = step.attempts[at]
    entry, ended = attempt.entry, _end_of(attempt, story)
    if entry.outcome == "waiting":
        later = (each.entry for each in step.attempts[at + 1 :])
        again = (each.started_at for each in later if each.specialist == entry.specialist)
        ended = next(again, story.ended)
    return Span(
        began=entry.started_at,
        ended=ended,
        outcome=attempt.outcome,
        told=attempt.told,
        is_known=attempt.seconds is not None,
        asked_at=entry.ended_at if entry.outcome == "waiting" else None,
        specialist=entry.specialist,
        number=entry.number,
    )


def _end_of(attempt: AttemptView, story: Story) -> datetime:
    """The end of an attempt; of one that was cut off, when work on the run ended."""
    entry = attempt.entry
    if entry.ended_at is not None:
        return entry.ended_at
    cuts = (pause.began for pause in story.pauses if pause.began >= entry.started_at)
    return next(cuts, story.ended)
