"""What outlives a process, in one place: state, journal and book of runs."""

from dataclasses import dataclass
from typing import Any, cast

from langgraph.checkpoint.base import BaseCheckpointSaver

from replan.ports.journal import Journal
from replan.ports.ownership import Holds
from replan.ports.run_book import RunBook


@dataclass(frozen=True, kw_only=True)
class Storage:
    """What `open_storage` gives and `build_graph` takes.

    Attributes:
        checkpointer: A LangGraph saver with a strict serializer.
        journal: What must be known of a run even if a node never returns.
        runs: Which runs there were, and their events.
        keep_days: Days for which prompts, replies and long texts of events are kept; None: as long
            as their runs.
    """

    checkpointer: BaseCheckpointSaver[Any]
    journal: Journal
    runs: RunBook
    keep_days: float | None = None

    @property
    def holds(self) -> Holds:
        """Who works on which thread."""
        return cast("Any", self.checkpointer).holds
