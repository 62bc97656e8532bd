"""The calculator: exact arithmetic on given numbers and on the figures of earlier steps."""

from replan_local.calculation.calculator import Calculator

__all__ = ["Calculator"]
