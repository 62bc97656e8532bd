"""The data analyst: exact figures from the tables of a folder."""

from replan.specialists.local.analyst.data_analyst import DataAnalyst

__all__ = ["DataAnalyst"]
