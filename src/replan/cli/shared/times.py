"""Times as people type them."""

import re
from datetime import UTC, datetime, timedelta

from replan.base.errors import InputError

_AGO = re.compile(r"(?P<number>\d{1,9})\s?(?P<unit>[mhd])")
_MINUTES = {"m": 1, "h": 60, "d": 24 * 60}


def read_time(text: str, now: datetime) -> datetime:
    """Read a time: a date, with or without a time of the day, or how long ago.

    Raises:
        InputError: It is neither.
    """
    if ago := _AGO.fullmatch(text.strip()):
        try:
            return now - timedelta(minutes=int(ago["number"]) * _MINUTES[ago["unit"]])
        except OverflowError:
            return datetime.min.replace(tzinfo=UTC)
    try:
        return datetime.fromisoformat(text.strip()).astimezone()
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"--since {text} is not a time. Write 2026-01-31, 2026-01-31T09:30, 90m, 12h or 7d."
        ) from error
