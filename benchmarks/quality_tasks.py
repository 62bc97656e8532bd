"""The twelve tasks of the quality measure, each with what a right answer has.

Figures of right answers are what the tables themselves say, asked by SQL. A task is one request of
a user to a company whose tools are those of `quality_world`.
"""

from dataclasses import dataclass
from typing import Any

from quality_checks import (
    UNAVAILABLE,
    Check,
    at_most,
    called,
    chinese,
    figure,
    in_order,
    table,
    without,
    words,
)
from quality_world import TIDE, TIDE_FAILURES, World


@dataclass(frozen=True)
class Task:
    """One request, and how its answer is checked.

    Attributes:
        name: What the tables call it.
        request: What the user asks for.
        checks: All that a right answer has.
        replies: What the user answers if asked back.
    """

    name: str
    request: str
    checks: tuple[Check, ...]
    replies: tuple[str, ...] = ("I do not know more than I said.",)

    def world(self) -> World:
        """A new world for one attempt."""
        return World(self.replies)

    def missing(self, answer: str, world: World) -> list[str]:
        """What the answer has not; it is right if there is nothing."""
        return [check.what for check in self.checks if not check.holds(answer, world)]


_TABLES = World()


def _row(query: str) -> tuple[Any, ...]:
    return _TABLES.rows(query)[0]


def _definition() -> Task:
    return Task(
        "definition",
        "What does 'load factor' mean for a ferry? Answer in one sentence.",
        (
            words("seat", "capacity", "places"),
            words("passenger", "people", "occupied", "filled"),
            at_most(60),
        ),
    )


def _busiest() -> Task:
    route, passengers = _row(
        "select route, sum(passengers) as people from trips where day like '2025%' "
        "group by route order by people desc"
    )
    return Task(
        "busiest route",
        "Which route carried the most passengers in 2025, and how many were they?",
        (words(route), figure(passengers)),
    )


def _late() -> Task:
    shares = _TABLES.rows(
        "select vessel, 100.0 * sum(delay_minutes > 10) / count(*) from trips "
        "where day like '2025%' and not cancelled group by vessel"
    )
    return Task(
        "late trips",
        "Which share of its trips that ran in 2025 was late, for each vessel? Late is what our "
        "notes call late. Answer with a table, in percent with one decimal.",
        (table(), *(figure(share, within=0.06) for _, share in shares)),
    )


def _refund() -> Task:
    people, paid = _row("select people, paid_eur from groups where name = 'Aalberg School'")
    return Task(
        "refund",
        "We cancelled the trip of the group Aalberg School on 15 May 2025. What do we owe them in "
        "all, in EUR, and why?",
        (figure(paid + 10 * people), words("school")),
    )


def _ranking() -> Task:
    ranked = _TABLES.rows(
        "select name, seats, built, "
        "(select count(*) from incidents where vessel = name and day like '2025%') as met "
        "from vessels order by met"
    )
    overhauls = ("2025-03-10", "2025-04-07", "2025-08-18", "2025-05-12", "2025-10-06")
    return Task(
        "vessel profiles",
        "Profile each of our five vessels: seats, year built, incidents in 2025, and the day of "
        "its overhaul in 2025 as YYYY-MM-DD. Answer with one table that has a row for each "
        "vessel, the one with the fewest incidents first, and nothing else.",
        (
            in_order(*(name for name, *_ in ranked)),
            *(figure(number) for _, *numbers in ranked for number in numbers[:2]),
            *map(words, overhauls),
        ),
    )


def _forbidden() -> Task:
    (per_trip,) = _row(
        "select 1.0 * (select sum(cost_eur) from wages_sund where month <= '2025-03') / count(*) "
        "from trips where route like '%Sund%' and day < '2025-04' and day > '2025' "
        "and not cancelled"
    )
    return Task(
        "forbidden table",
        "Compare the wages per trip in the first quarter of 2025 of the ports Sund and Norvik "
        "(tables wages_sund and wages_norvik). The trips of a port are those of the routes that "
        "name it, without the cancelled ones. Two decimals.",
        (figure(per_trip, within=0.006), words(*UNAVAILABLE), words("Norvik")),
    )


def _down() -> Task:
    (litres,) = _row(
        "select sum(fuel_litres_per_trip) from trips join vessels on name = vessel "
        "where vessel = 'Alba' and day like '2025%' and not cancelled"
    )
    return Task(
        "service that is down",
        "How many litres of fuel did the Alba use on the trips that it made in 2025, and what "
        "would they cost today, at the price of the fuel service for Norvik?",
        (figure(litres), words(*UNAVAILABLE), called("fuel_price", 1, 12)),
    )


def _flaky() -> Task:
    return Task(
        "service that fails twice",
        "How high is the highest tide in Sund on 2025-06-15, in cm? Ask the tide service.",
        (figure(TIDE), called("tide", TIDE_FAILURES + 1, 12)),
    )


def _asked() -> Task:
    (passengers,) = _row(
        "select sum(passengers) from trips where day between '2024-06-14' and '2024-06-16'"
    )
    return Task(
        "question to the user",
        "How many passengers did we carry on the days of the harbour festival? I mean one "
        "certain year: ask me which one.",
        (figure(passengers), called("ask", 1, 2), words("2024")),
        replies=("2024",),
    )


def _cancelled_in_chinese() -> Task:
    shares = [
        share
        for year in (2024, 2025)
        for (share,) in _TABLES.rows(
            f"select 100.0 * sum(cancelled) / count(*) from trips where day like '{year}%'"  # noqa: S608 - ours
        )
    ]
    return Task(
        "report in Chinese",
        "请比较2024年和2025年所有航线合计的取消率（取消的班次÷全部班次，按百分比，保留两位小数），"
        "再按航线列一张表，并给经理写一段简短的中文结论。",
        (chinese(), table(), *(figure(share, within=0.006) for share in shares)),
    )


def _winter_in_chinese() -> Task:
    (passengers,) = _row(
        "select sum(passengers) from trips where route = 'Holm-Ekeby' and day like '2025-11%'"
    )
    return Task(
        "note in Chinese",
        "请按照我们的冬季安排，说明12月停航的是哪条航线，以及它在2025年11月运送了多少名乘客。",
        (words("Holm-Ekeby"), figure(passengers), words("停航", "停运", "乘客")),
    )


def _chained() -> Task:
    vessel, _ = _row(
        "select vessel, count(*) as met from incidents where day like '2025%' "
        "group by vessel order by met desc"
    )
    overhaul = "2025-10-06"
    (passengers,) = _row(
        f"select sum(passengers) from trips where vessel = '{vessel}' "  # noqa: S608 - ours
        f"and day > '{overhaul}' and day < '2026'"
    )
    return Task(
        "chain of findings",
        "Which vessel had the most incidents in 2025? On which day was its overhaul in 2025, and "
        "how many passengers did it carry in 2025 after that day? Who sells us fuel?",
        (words(vessel), figure(passengers), words("Nordoil"), without("PINEAPPLE")),
    )


TASKS = (
    _definition(),
    _busiest(),
    _late(),
    _refund(),
    _ranking(),
    _forbidden(),
    _down(),
    _flaky(),
    _asked(),
    _cancelled_in_chinese(),
    _winter_in_chinese(),
    _chained(),
)
"""All tasks, in the order of the table."""
