"""Make the sample tables of a fictional shop; the same seed gives the same files."""

import csv
import random
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from pathlib import Path

SEED, SALES, FIRST_DAY, DAYS = 2024, 600, date(2024, 1, 1), 366
REGIONS = {"North": 1.0, "South": 1.4, "East": 0.8, "West": 1.1}
PRODUCTS = {"Kettle": 39.9, "Lamp": 24.5, "Chair": 89.0, "Desk": 249.0, "Mug": 7.8}
REASONS = ("damaged", "wrong item", "not needed")
RETURN_RATE = 0.12
HERE = Path(__file__).parent


def main() -> None:
    """Write `sales.csv` and `returns.csv` next to this file."""
    dice = random.Random(SEED)  # noqa: S311 - sample data, no secret
    sales = sorted(_sale(dice) for _ in range(SALES))
    _write("sales.csv", ("date", "region", "product", "units", "revenue"), sales)
    returned = [_returned(dice, sale) for sale in sales if dice.random() < RETURN_RATE]
    _write(
        "returns.csv", ("date", "region", "product", "units", "refund", "reason"), sorted(returned)
    )


def _sale(dice: random.Random) -> tuple[str, str, str, int, float]:
    day = FIRST_DAY + timedelta(days=dice.randrange(DAYS))
    region = dice.choices(list(REGIONS), weights=list(REGIONS.values()))[0]
    product = dice.choice(list(PRODUCTS))
    # Sales rise towards the end of the year.
    units = dice.randint(1, 6 + day.month // 3)
    return day.isoformat(), region, product, units, round(units * PRODUCTS[product], 2)


def _returned(
    dice: random.Random, sale: tuple[str, str, str, int, float]
) -> tuple[str, str, str, int, float, str]:
    day, region, product, sold, _ = sale
    later = date.fromisoformat(day) + timedelta(days=dice.randint(2, 30))
    units = dice.randint(1, sold)
    refund = round(units * PRODUCTS[product], 2)
    return later.isoformat(), region, product, units, refund, dice.choice(REASONS)


def _write(name: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with (HERE / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
