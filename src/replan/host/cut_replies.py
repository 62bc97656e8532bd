"""The use of a reply that was cut off: an answer counts as it is, a plan not at all."""

from typing import TypeVar, cast

from replan.models.reply_end import ReplyEnd
from replan.replies.readings import FeedbackReading, ThinkReading
from replan.replies.unreadable import PLAN_FORM, Complaint
from replan.state.results import TaskComplexity

R = TypeVar("R")

SHORTER = "Write it again, shorter, so that all of it fits."


def unless_cut_thought(
    read: ThinkReading | Complaint[ThinkReading], end: ReplyEnd
) -> ThinkReading | Complaint[ThinkReading]:
    """Return the reading of a think reply; a plan without its end is requested again, twice."""
    reading = _reading(read)
    if not end.cut or reading is None or reading.complexity is TaskComplexity.SIMPLE:
        return _with_reason(read, end)
    return _complaint(reading.replace(body=""), end, "the plan is asked for by itself")


def unless_cut_judgement(
    read: FeedbackReading | Complaint[FeedbackReading], end: ReplyEnd
) -> FeedbackReading | Complaint[FeedbackReading]:
    """Return the reading of a feedback reply; a revision without its end changes nothing."""
    reading = _reading(read)
    if not end.cut or reading is None or reading.verdict == "complete":
        return _with_reason(read, end)
    return _complaint(reading.replace(body=""), end, "the plan stays as it is")


def reason_of_cut(end: ReplyEnd) -> str:
    return f"The reply is incomplete: {end.why}."


def _complaint(reading: R, end: ReplyEnd, done: str) -> Complaint[R]:
    return Complaint(
        wrong=reason_of_cut(end), form=f"{SHORTER} {PLAN_FORM}", reading=reading, done=done
    )


def _reading(read: R | Complaint[R]) -> R | None:
    return cast("Complaint[R]", read).reading if isinstance(read, Complaint) else read


def _with_reason(read: R | Complaint[R], end: ReplyEnd) -> R | Complaint[R]:
    """Return a reading; a complaint about a reply also says why it was cut off."""
    if not end.cut or not isinstance(read, Complaint):
        return read
    complaint = cast("Complaint[R]", read)
    return complaint.replace(wrong=f"{reason_of_cut(end)} {complaint.wrong}")
