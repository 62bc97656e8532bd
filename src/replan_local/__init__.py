"""A team that works without any model: tables, texts, arithmetic and reports."""

from pathlib import Path

from replan.ports.specialist import SpecialistPort
from replan_local.analyst import DataAnalyst
from replan_local.calculation import Calculator
from replan_local.library import Librarian
from replan_local.writing import Clock, ReportWriter

__all__ = ["Calculator", "DataAnalyst", "Librarian", "ReportWriter", "local_specialists"]


def local_specialists(
    directory: Path, out: Path | None = None, *, clock: Clock | None = None
) -> tuple[SpecialistPort, ...]:
    """Give the local team.

    Args:
        directory: The folder whose tables and texts may be read.
        out: Where reports are written; without it, in the folder.
        clock: Tells the date of a report.

    Raises:
        ConfigurationError: The extra `local` is not installed.
    """
    return (
        DataAnalyst(directory),
        Librarian(directory),
        Calculator(),
        ReportWriter(out or directory, clock),
    )
