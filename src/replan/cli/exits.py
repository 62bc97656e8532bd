"""The exit codes of the program."""

GOOD = 0
INCOMPLETE = 1
WRONG_USE = 2
WAITING = 3
INTERRUPTED = 130
TERMINATED = 143

CODES = {"answered": GOOD, "completed": GOOD, "waiting": WAITING}
"""By the outcome of a run; every other one is `INCOMPLETE`."""
