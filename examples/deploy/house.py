"""The specialists of this deployment; each reports its process."""

import os

from replan import ExecutionContext


def paint(context: ExecutionContext) -> str:
    """Paint a room."""
    return f"{context.task_description}: painted in process {os.getpid()}."


def size(context: ExecutionContext) -> str:
    """Compute the size of a room."""
    return f"{context.task_description}: 20 square metres, says process {os.getpid()}."
