"""The exit codes of the program."""

GOOD = 0
INCOMPLETE = 1
WRONG_USE = 2
WAITING = 3
INTERRUPTED = 130
