"""The writer: one report of what the earlier steps found, with tables and a chart."""

from replan_local.writing.report_writer import Clock, ReportWriter

__all__ = ["Clock", "ReportWriter"]
