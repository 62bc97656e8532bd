"""An event that is reported once it is on record."""

from collections.abc import Callable
from typing import NamedTuple

from replan.log.events.types import Event


class Announcement(NamedTuple):
    """The public part of a row, and who is told once the row is safe.

    Attributes:
        event: What others see of it.
        publish: Is called with the event, with its number if it has one.
    """

    event: Event
    publish: Callable[[Event], None]
