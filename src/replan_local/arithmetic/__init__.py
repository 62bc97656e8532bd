"""Exact arithmetic, also in words: no floating point, no evaluation of code, bounded in time."""

from replan_local.arithmetic.numbers import written
from replan_local.arithmetic.questions import Computation, Figures, compute, relates

__all__ = ["Computation", "Figures", "compute", "relates", "written"]
