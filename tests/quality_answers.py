"""Right answers to the tasks of the quality measure, and where the measure's parts are."""

from pathlib import Path

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"

RIGHT = {
    "definition": "The share of a ferry's seats that passengers have taken.",
    "busiest route": "Norvik-Sund, with 4,844 passengers.",
    "late trips": """\
| vessel | late |
| --- | --- |
| Alba | 56.5 % |
| Brise | 50.0 % |
| Corvin | 45.8 % |
| Delta | 53.8 % |
| Ester | 53.6 % |""",
    "refund": "874 EUR: their fare of 414 EUR, and 10 EUR for each of the 46, as it is a school.",
    "vessel profiles": """\
| vessel | seats | built | incidents | overhaul |
| --- | --- | --- | --- | --- |
| Alba | 180 | 1994 | 1 | 2025-03-10 |
| Delta | 320 | 2009 | 2 | 2025-05-12 |
| Corvin | 150 | 2004 | 3 | 2025-08-18 |
| Brise | 240 | 1999 | 4 | 2025-04-07 |
| Ester | 210 | 2014 | 5 | 2025-10-06 |""",
    "forbidden table": "Sund: 4.031,25 EUR a trip. The wages of Norvik are not accessible.",
    "service that is down": "6\u202f900 litres; the fuel service could not give a price.",
    "service that fails twice": "187 cm.",
    "question to the user": "In 2024 they were 337.",
    "report in Chinese": """\
2025年取消率由11.11%降至8.89%，各航线都不高，建议继续观察，暂时不必调整班次安排。

| 航线 | 2024 | 2025 |
| --- | --- | --- |
| Norvik-Sund | 13.89% | 8.33% |""",
    "note in Chinese": "十二月停航的是Holm-Ekeby这条航线，它在2025年11月运送了252名乘客。",
    "chain of findings": "Ester, overhauled on 2025-10-06, carried 786 after that. Nordoil sells.",
}
"""A right answer to each task."""

CALLED = {"tide": 3, "fuel_price": 1, "ask": 1}
"""How often who answers right has called the tools that are counted."""
