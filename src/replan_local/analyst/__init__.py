"""The data analyst: exact figures from the tables of a folder."""

from replan_local.analyst.data_analyst import DataAnalyst

__all__ = ["DataAnalyst"]
