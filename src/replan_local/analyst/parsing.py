"""Read a question about a table from a sentence, against the columns that the table has."""

import re
from collections.abc import Callable, Sequence

from replan_local.analyst.names import ColumnNames, Match, one_of
from replan_local.analyst.question import Aggregate, Filter, Measure, Question
from replan_local.analyst.settling import Found, default_aggregate, settle
from replan_local.analyst.tables import Column
from replan_local.analyst.wording import (
    ADVERBS,
    AGGREGATES,
    BY,
    CONDITION,
    HIGHEST,
    LOWEST,
    MONTHS,
    NOISE,
    ORDER,
    PERIODS,
    operator_at,
)
from replan_local.words import as_written, words_of

ValueOwner = Callable[[Sequence[str]], Filter | None]
"""Finds the column that holds a value spoken of; asked only for words nothing else explains."""

_YEAR = re.compile(r"^(?:19|20)\d\d$")
_NUMBER = re.compile(r"^\d+(?:\.\d+)?$")
_BRACKETS = re.compile(r"\[[^\[\]]*\]")
_LONGEST_VALUE = 4
_BEFORE_A_DATE = frozenset(("in", "for", "during", "of", "only"))


def parse_question(
    text: str, names: ColumnNames, table_words: frozenset[str], owner: ValueOwner
) -> Question:
    """Read a question.

    Args:
        text: The sentence, without file names.
        names: The columns of the table.
        table_words: Words that mean the table itself.
        owner: Finds the column of a value.

    Raises:
        CannotAnswerError: A column that is needed is not there, or could be several.
    """
    found = _Reading(_BRACKETS.sub(" ", text), names, table_words, owner).read()
    return settle(found, names)


class _Reading:
    """One pass over the words of a sentence, each of which is taken at most once."""

    def __init__(
        self, text: str, names: ColumnNames, table_words: frozenset[str], owner: ValueOwner
    ) -> None:
        prepared = names.set_apart(text)
        self.words = words_of(prepared)
        self.raw = as_written(prepared)
        self.names = names
        self.table_words = table_words
        self.owner = owner
        self.found = Found()
        self._fresh = True
        self._noun = -1

    def read(self) -> Found:
        """Read all words from left to right."""
        place = 0
        while place < len(self.words):
            place += self._step(place)
        self._explain_rest()
        return self.found

    def _step(self, place: int) -> int:
        """Take what begins at a place; give how many words it had."""
        readers = (
            self._read_by,
            self._read_filter,
            self._read_whole_column,
            self._read_order,
            self._read_period,
            self._read_date,
            self._read_aggregate,
            self._read_part_of_column,
        )
        for reader in readers:
            if taken := reader(place):
                return taken
        if not self._is_noise(self.words[place]) and place != self._noun:
            self.found.unexplained.append(self.raw[place])
        return 1

    def _word(self, place: int) -> str:
        return self.words[place] if place < len(self.words) else ""

    def _is_noise(self, word: str) -> bool:
        return word in NOISE or word in self.table_words

    def _read_order(self, place: int) -> int:
        word, following = self.words[place], self._word(place + 1)
        # The verb only: "orders" are things that are counted.
        if self.raw[place].casefold() in ORDER:
            self.found.order = "highest"
            return 2 if following == "by" else 1
        if word not in HIGHEST | LOWEST:
            # "5 largest regions" has its number in front.
            return int(bool(_NUMBER.match(word)) and self._take_number(word, following))
        self.found.order = "lowest" if word in LOWEST else "highest"
        if following.isdigit():
            self.found.top = max(1, int(following))
            return 2
        return 1

    def _take_number(self, number: str, following: str) -> bool:
        if number.isdigit() and following in HIGHEST | LOWEST:
            self.found.top = max(1, int(number))
            return True
        return False

    def _read_by(self, place: int) -> int:
        if self.words[place] not in BY:
            return 0
        start = place + 1
        while self._word(start) in BY | {"the", "group"}:
            start += 1
        if self._word(start) in AGGREGATES and self.names.at(self.words, start) is None:
            # "The top 3 regions by total revenue": what follows is a measure.
            return start - place
        end = self._groups_from(start)
        if end == start and self._word(start) and not self._is_noise(self._word(start)):
            raise self.names.unknown(self.raw[start])
        return end - place

    def _groups_from(self, place: int) -> int:
        """Take columns and periods joined by "and"; give the place behind the last one."""
        end = place
        while taken := self._one_group(place, first=end == place):
            end = place + taken
            if self._word(end) not in {"and", ","}:
                break
            place = end + 1
            if self._word(place) in {"and", "by"}:
                place += 1
        return end

    def _one_group(self, place: int, *, first: bool) -> int:
        match = self._column_at(place)
        if match is None and self._word(place) in PERIODS:
            self.found.period = PERIODS[self._word(place)]
            return 1
        if match is None or not (first or match.column.kind != "number"):
            return 0
        self._note(match, place)
        self.found.groups.append(match.column)
        return match.length

    def _read_period(self, place: int) -> int:
        word = self.words[place]
        if word == "time" and place and self.words[place - 1] == "over":
            self.found.guessed.append("'over time' read as by month")
            word = "monthly"
        # A period without "by", as in "the best month", says nothing new where there is one.
        period = ADVERBS.get(word) or self.found.period or PERIODS.get(word)
        if word not in ADVERBS and word not in PERIODS:
            return 0
        self.found.period = period or ""
        return 1

    def _read_date(self, place: int) -> int:
        """Read a year, or the name of a month behind a preposition."""
        word = self.words[place]
        month = MONTHS.get(word) if place and self.words[place - 1] in _BEFORE_A_DATE else None
        if not self.names.of_kind("date") or not (month or _YEAR.match(word)):
            return 0
        column = one_of(self.names.of_kind("date"), "a column with a date", self.names.table)
        part, value = ("month", month) if month else ("year", int(word))
        self.found.filters.append(Filter(column=column.name, value=value, part=part))
        return 1

    def _read_filter(self, place: int) -> int:
        start = place + 1 if self.words[place] in CONDITION else place
        match = self.names.at(self.words, start)
        if match is None:
            return 0
        operator, length = operator_at(self.words, start + match.length)
        at = start + match.length + length
        if operator is None or at >= len(self.words):
            return 0
        taken = self._value_length(at)
        raw = " ".join(self.raw[at : at + taken])
        number = match.column.kind == "number" and _NUMBER.match(raw)
        value = (float(raw) if "." in raw else int(raw)) if number else raw
        self.found.filters.append(Filter(column=match.column.name, operator=operator, value=value))
        return at + taken - place

    def _value_length(self, place: int) -> int:
        end = place + 1
        while end < len(self.words) and not self._ends_value(end):
            end += 1
        return end - place

    def _ends_value(self, place: int) -> bool:
        word = self.words[place]
        return word in NOISE or word in BY or word in AGGREGATES or word in ADVERBS

    def _read_whole_column(self, place: int) -> int:
        match = self.names.at(self.words, place)
        return self._take(match, place) if match is not None else 0

    def _read_part_of_column(self, place: int) -> int:
        match = self._column_at(place)
        return self._take(match, place) if match is not None else 0

    def _take(self, match: Match, place: int) -> int:
        self._note(match, place)
        column = match.column
        wanted: list[Aggregate] = self.found.aggregates or _usual(column)
        if column.kind != "number":
            wanted = [kind for kind in self.found.aggregates if kind in ("count", "distinct")]
        self.found.measures += [Measure(aggregate=kind, column=column.name) for kind in wanted]
        self.found.mentioned.append(column)
        self._fresh = False
        return match.length

    def _read_aggregate(self, place: int) -> int:
        aggregate = AGGREGATES.get(self.words[place])
        if aggregate is None:
            return 0
        if not self._fresh or aggregate == "distinct":
            # "number of distinct regions" is one thing, "total and average" are two.
            self.found.aggregates = []
        self.found.aggregates.append(aggregate)
        self._fresh = True
        if aggregate == "count":
            self._noun = self._counted_noun(place + 1)
        return 1

    def _counted_noun(self, place: int) -> int:
        """Where the thing stands that is counted: "orders" in "count of late orders by month"."""
        while self._word(place) in {"of", "the", "all"}:
            place += 1
        last = -1
        while (word := self._word(place)) and self._column_at(place) is None:
            if word in self.table_words:
                return -1
            if self._is_noise(word) or word in BY | CONDITION or word in AGGREGATES:
                break
            last, place = place, place + 1
        return last

    def _column_at(self, place: int) -> Match | None:
        word = self._word(place)
        match = self.names.at(self.words, place)
        if match is not None or not word or word in PERIODS or word in AGGREGATES:
            return match
        return None if self._is_noise(word) else self.names.partly(word)

    def _note(self, match: Match, place: int) -> None:
        if match.guessed:
            self.found.guessed.append(f"'{self.raw[place]}' read as {match.column.name}")

    def _explain_rest(self) -> None:
        """Look for values of the table among the words that nothing explained."""
        found: list[Filter] = []
        rest, self.found.unexplained = self.found.unexplained, []
        while rest:
            for length in range(min(_LONGEST_VALUE, len(rest)), 0, -1):
                value = self.owner(rest[:length])
                if value is not None:
                    found.append(value)
                    rest = rest[length:]
                    break
            else:
                self.found.unexplained.append(rest.pop(0))
        self._place_values(found)

    def _place_values(self, found: list[Filter]) -> None:
        columns = {value.column for value in found}
        if len(found) > 1 and len(columns) == 1:
            self.found.series = found
        else:
            self.found.filters += found


def _usual(column: Column) -> list[Aggregate]:
    return [default_aggregate(column)]
