"""The shop's team, which knows its notes, and remembers facts about its user."""

from pathlib import Path
from typing import Any

from replan import (
    ExecutionContext,
    ExecutionStatus,
    Host,
    MemoryOptions,
    RAGOptions,
    Specialist,
    SpecialistResult,
    Team,
    ask_user,
)

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


def order(context: ExecutionContext) -> str:
    """Order the amount that a person chooses."""
    amount = ask_user("How many desk lamps?")
    return f"ordered {amount} desk lamps under {context.idempotency_key[:4]}..."


def shop(model: Any) -> Team:
    """The team: it counts, looks up prices, and orders."""
    return Team(
        host=Host(model, remembers=True),
        specialists=[
            Specialist("stock", "Counts one article in the shop.", run=count, effects="pure"),
            Specialist(
                "buyer",
                "Says what has to be ordered and what it costs, from counts.",
                chat_model=model,
                tools=[price],
                effects="pure",
            ),
            Specialist("order", "Orders lamps at the maker.", run=order, effects="keyed"),
        ],
        approval="plan",
        knowledge=str(Path(__file__).parent / "notes"),
        rag=RAGOptions(top_k=1),
        memory=MemoryOptions(mode="window", history_limit=6),
    )
