"""The shop's team, as in step 2."""

from typing import Any

from replan import ExecutionContext, ExecutionStatus, Host, Specialist, SpecialistResult, Team

STOCK = {"desk lamp": 3, "floor lamp": 14}
PRICES = {"desk lamp": 31.5, "floor lamp": 78.0}


def count(context: ExecutionContext) -> str | SpecialistResult:
    """Count one article, which the step's line names."""
    for article, amount in STOCK.items():
        if article in context.task_description.lower():
            return f"{amount} {article}s"
    error = f"There is no such article. There are: {', '.join(STOCK)}."
    return SpecialistResult(status=ExecutionStatus.FAILED, error=error, retry=False)


def price(article: str) -> float:
    """Return the maker's price for one piece of an article, in euros."""
    return PRICES[article]


def shop(model: Any) -> Team:
    """The team: a function that counts, and a model that may call a tool."""
    return Team(
        host=Host(model),
        specialists=[
            Specialist("stock", "Counts one article in the shop.", run=count, effects="pure"),
            Specialist(
                "buyer",
                "Says what has to be ordered and what it costs, from counts.",
                chat_model=model,
                tools=[price],
                effects="pure",
            ),
        ],
    )
