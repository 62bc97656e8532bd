"""A team for a small lamp shop: a function, and a chat model."""

from typing import Any

from replan import ExecutionContext, ExecutionStatus, Host, Specialist, SpecialistResult, Team

STOCK = {"desk lamp": 3, "floor lamp": 14}


def count(context: ExecutionContext) -> str | SpecialistResult:
    """Count one article, which the step's line names."""
    for article, amount in STOCK.items():
        if article in context.task_description.lower():
            return f"{amount} {article}s"
    error = f"There is no such article. There are: {', '.join(STOCK)}."
    return SpecialistResult(status=ExecutionStatus.FAILED, error=error, retry=False)


def shop(model: Any) -> Team:
    """The team: a function that counts, and a model that advises."""
    return Team(
        host=Host(model),
        specialists=[
            Specialist("stock", "Counts one article in the shop.", run=count),
            Specialist("buyer", "Says what has to be ordered, from counts.", chat_model=model),
        ],
    )
