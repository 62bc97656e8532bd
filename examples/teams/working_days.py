"""Count working days: a specialist that is a plain function."""

import re
from datetime import date, timedelta

from replan import ExecutionContext

_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_DATES = 2
_SATURDAY = 5


def count_in_step(context: ExecutionContext) -> str:
    """Answer a step that names two dates.

    Raises:
        ValueError: It does not; the host reads this and may revise the plan.
    """
    dates = [date.fromisoformat(text) for text in _DATE.findall(context.task_description)]
    if len(dates) != _DATES:
        raise ValueError("name two dates, as in 2026-03-02")
    first, last = sorted(dates)
    return f"From {first} to {last} there are **{working_days(first, last)}** working days."


def working_days(first: date, last: date) -> int:
    """Count Mondays to Fridays, both ends included; holidays count as working days."""
    days = range((last - first).days + 1)
    return sum((first + timedelta(day)).weekday() < _SATURDAY for day in days)
