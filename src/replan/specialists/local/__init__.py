"""A team that works without any model: it computes from tables and writes reports."""

from pathlib import Path

from replan.ports.specialist import SpecialistPort
from replan.specialists.local.data_analyst import DataAnalyst
from replan.specialists.local.report_writer import Clock, ReportWriter

__all__ = ["DataAnalyst", "ReportWriter", "local_specialists"]


def local_specialists(
    directory: Path, out: Path | None = None, *, clock: Clock | None = None
) -> tuple[SpecialistPort, ...]:
    """Give the local team.

    Args:
        directory: The folder whose tables may be read.
        out: Where reports are written; without it, in the folder.
        clock: Tells the date of a report.

    Raises:
        ConfigurationError: The extra `local` is not installed.
    """
    return (DataAnalyst(directory), ReportWriter(out or directory, clock))
