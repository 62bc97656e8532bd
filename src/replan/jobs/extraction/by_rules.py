"""Extraction by rules: each part of a message fills one slot at most, or is asked about."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from replan.jobs.extraction.answers import answer_in, is_no_answer
from replan.jobs.extraction.claims import (
    Claim,
    Claims,
    claim_forms,
    claim_numbers,
    is_glue,
    is_open,
    pieces_of,
)
from replan.jobs.extraction.names import LINK, NAME, aliases, outermost, places, small_words
from replan.jobs.extraction.numbers import WORDS, Span, folded
from replan.jobs.extraction.port import Extracted, Wanted
from replan.jobs.job import CONFIRMATION
from replan.jobs.sayings import bare, count_words, is_question, means
from replan.jobs.spec.slot import Slot
from replan.jobs.spec.slot_values import to_boolean, to_object, to_text

_CHANGE = r"(?:change|set|make|switch|correct)\s+(?:the\s+|my\s+)?"
_SENTENCE_END = re.compile(r"\n|(?<=[;；!\uff01?\uff1f])(?=\s|$)|[.](?=\s|$)|。")
_BETWEEN_VALUES = " \t\r\n,;，；、"
_AND = re.compile(r"(?<=[\s,;，；、])(?:and|but)$")
_LONGEST_READ = 20_000
_FEW = 4
_WAY = re.compile(WORDS["answers"]["way"])


@dataclass(frozen=True)
class Reading:
    """The values that the rules found, and the text that they did not understand."""

    found: Extracted
    is_sure: bool  # whether all of the message is understood, so that no model need be asked
    # The slots whose value is a free text, which a model may read in another way.
    guessed: frozenset[str] = frozenset()
    # Texts with the form of a secret that no slot got.
    hidden: tuple[str, ...] = ()


class RuleExtractor:
    """Finds values without a model."""

    async def extract(self, wanted: Wanted) -> Extracted:
        """Look through the new messages of the user."""
        return read_by_rules(wanted).found


def read_by_rules(wanted: Wanted) -> Reading:
    """Search the new messages of the user: for yes and no, names, then the requested value."""
    return _Reader(wanted).read()


class _Reader:
    """Reads one message. What claims a part of it first has it; the most specific comes first."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted, self.spec = wanted, wanted.spec
        self.said = wanted.said[:_LONGEST_READ]
        self.text = folded(self.said)
        self.asked = self.spec.slot(wanted.asked) if self.spec.knows(wanted.asked) else None
        self.claims = Claims(wanted, self.text)
        self.named: dict[str, JsonValue] = {}
        self.guessed: set[str] = set()

    def read(self) -> Reading:
        claim_forms(self.claims)
        single = self._single_meaning()
        if single is not None:
            return Reading(single, is_sure=True)
        claim_numbers(self.claims)
        self._claim_named()
        rest = self.claims.rest()
        if is_question(rest):
            # What is in a question may be about anything.
            self.claims.drop([claim for claim in self.claims.found if not claim.is_named])
            return self._reading("", is_sure=False)
        command, is_sure = self._command(rest), None
        if self.asked is not None and not command and self.asked.name not in self._values():
            is_sure = self._claim_answer(self.asked)
        if is_sure is None:
            words = {word for command in self.spec.commands for word in aliases(command)}
            is_sure = bool(self._values() or command) and is_glue(self.claims.rest(), words)
        return self._reading(command, is_sure=is_sure)

    def _reading(self, command: str, *, is_sure: bool) -> Reading:
        hidden = tuple(
            self.text[slice(*claim.span)] for claim in self.claims.found if not claim.slot
        )
        found = Extracted(command=command, values=self._values())
        return Reading(found, is_sure, frozenset(self.guessed), hidden)

    def _values(self) -> dict[str, JsonValue]:
        return {**self.claims.values(), **self.named}

    def _single_meaning(self) -> Extracted | None:
        """The meaning of a message with a single intent: cancel, yes or no; else nothing."""
        if self.asked is not None and self.asked.name in self.claims.values():
            return None
        if means(self.text, "cancel"):
            return Extracted(cancelled=True)
        if self.wanted.asked == CONFIRMATION and (
            means(self.text, "yes") or means(self.text, "no")
        ):
            return Extracted(confirmed=means(self.text, "yes"))
        is_nothing = means(self.text, "nothing") or means(self.text, "later")
        return Extracted() if is_nothing and not self.claims.values() else None

    def _command(self, rest: str) -> str:
        """The one command in a message; a known one is left only by a message of its own."""
        found: list[tuple[str, Span]] = []
        for command in self.spec.commands:
            for word in aliases(command):
                if word == bare(self.text):
                    return "" if command.name == self.wanted.job.command else command.name
                spans = places(word, rest) if not self.wanted.job.command else ()
                found += [(command.name, span) for span in spans]
        names = {name for name, _ in outermost(found)}
        return names.pop() if len(names) == 1 else ""

    def _claim_named(self) -> None:
        """Claim the values that are written with a name."""
        if self.text.lstrip().startswith("{") and isinstance(fields := to_object(self.said), dict):
            names = {
                name: each for each in self.wanted.names for name in aliases(self.spec.slot(each))
            }
            self.named = {names.get(bare(key), key): value for key, value in fields.items()}
            self.claims.free(self.claims.found)
            self.claims.add([Claim((0, len(self.text)))])
            return
        marks = [*self._name_marks()]
        edges = [*(start for start, _, _ in marks[1:]), len(self.text)]
        for (start, end, name), edge in zip(marks, edges, strict=False):
            self._claim_named_value(self.spec.slot(name), (start, end, edge))

    def _claim_named_value(self, slot: Slot, place: tuple[int, int, int]) -> None:
        start, end, edge = place
        inner = self.claims.within((end, edge))
        has_form = not slot.is_free and any(claim.slot == slot.name for claim in inner)
        if has_form or slot.name in self.named:
            return
        stop = self._end_of_named((start, end, edge))
        value = self.said[end:stop].strip()
        within = self.claims.within((end, stop))
        self.claims.free(within)
        if value and not any(self._is_hidden(claim) for claim in within):
            self.named[slot.name] = value
        self.claims.add([Claim((start, max(stop, end)))])

    def _is_hidden(self, claim: Claim) -> bool:
        """Whether a part has the form of a secret, which nobody else may have."""
        text = self.text[slice(*claim.span)]
        return self.spec.without_forms(text) != text

    def _end_of_named(self, place: tuple[int, int, int]) -> int:
        """Where a value ends that is written with a name: what other slots take is none of it."""
        start, end, edge = place
        is_line = start == 0 or self.text[start - 1] == "\n"
        if not is_line and (found := _SENTENCE_END.search(self.text, end, edge)) is not None:
            edge = found.start()
        pieces = [*pieces_of(self.text[end:edge], end)]
        is_cut = False
        while len(pieces) > 1 and self._is_beside(pieces[-1]):
            edge, is_cut = pieces.pop()[0], True
        text = self.text[end:edge]
        if not is_cut and (edge == len(self.text) or self.text[edge] in ".。\n"):
            return edge
        text = _AND.sub("", text.rstrip(_BETWEEN_VALUES)).rstrip(_BETWEEN_VALUES)
        return end + len(text.removesuffix("." if is_cut else ""))

    def _is_beside(self, piece: Span) -> bool:
        """Whether a piece has values of other slots and nothing else, or says thanks."""
        if means(self.text[slice(*piece)], "thanks"):
            return True
        is_taken = any(claim.slot for claim in self.claims.within(piece))
        return is_taken and is_glue(self.claims.rest(piece))

    def _name_marks(self) -> Iterator[tuple[int, int, str]]:
        """Where a slot is named in front of its value: the span of its name, and the slot."""
        found: list[tuple[int, int, str]] = []
        for name in self.wanted.names:
            for alias in aliases(self.spec.slot(name)):
                word = re.escape(folded(alias))
                left = r"(?<![A-Za-z0-9_])" if alias.isascii() else ""
                forms = rf"{_CHANGE}{word}\s+to\s+|{left}{word}\s*{LINK}\s*"
                found += [
                    (match.start(), -match.end(), name)
                    for match in re.finditer(forms, self.text, re.IGNORECASE)
                ]
        at = 0
        for start, end, name in sorted(found):
            if start >= at:
                yield start, -end, name
                at = -end

    def _claim_answer(self, asked: Slot) -> bool | None:
        """Take what is left of a message as the answer to a question; whether that is sure.

        None if the rest of the message decides that.
        """
        if not asked.is_free:
            return self._claim_formed_answer(asked)
        if asked.type == "object":
            return self._claim_fields(asked)
        run = self._run_of_answer()
        if run is None or to_text(self.said) is None or self._is_about_others(asked, run):
            return None
        answer = answer_in(self.said[slice(*run)], asked)
        if answer is None:
            return False
        self.claims.add([Claim(run, asked.name, answer.value)])
        self.guessed.add(asked.name)
        return answer.is_bare

    def _claim_fields(self, asked: Slot) -> bool | None:
        """Take a form of fields, which is all of a message but for values with names."""
        unnamed = [claim for claim in self.claims.found if claim.slot and not claim.is_named]
        self.claims.free(unnamed)
        rest = self.claims.rest().strip() if self.claims.found else self.said.strip()
        if to_object(rest) is None:
            self.claims.add(unnamed)
            return None
        self.named[asked.name] = rest
        return True

    def _run_of_answer(self) -> Span | None:
        """The one part of a message that can be a free text: whole pieces that nobody claims."""
        pieces = [*pieces_of(self.text)]
        if not self.claims.found:
            if not pieces or any(is_no_answer(self.text[slice(*span)]) for span in pieces):
                return None
            start = len(self.text) - len(self.text.lstrip())
            return start, len(self.text.rstrip())
        free = [
            place
            for place, span in enumerate(pieces)
            if self.claims.is_free(span) and not is_glue(self.text[slice(*span)])
        ]
        mixed = [
            span
            for span in pieces
            if not self.claims.is_free(span) and not is_glue(self.claims.rest(span))
        ]
        # What stands within a text may be a part of it.
        within = [claim for span in mixed for claim in self.claims.within(span)]
        self.claims.drop([c for c in within if not (c.is_named or self._is_hidden(c))])
        texts = [self.text[slice(*pieces[place])] for place in free]
        if mixed or not free or any(map(is_no_answer, texts)):
            return None
        is_one = free[-1] - free[0] == len(free) - 1
        return (pieces[free[0]][0], pieces[free[-1]][1]) if is_one else None

    def _is_about_others(self, asked: Slot, run: Span) -> bool:
        """Whether another slot may be meant: its word is there, or several names in a row."""
        text = self.text[slice(*run)]
        slots = [self.spec.slot(name) for name in self.wanted.names if name != asked.name]
        others = [slot for slot in slots if slot.is_free and slot.type == "text"]
        if any(any(places(word, text)) for slot in others for word in small_words(slot)):
            return True
        is_open_too = any(is_open(slot, self.wanted) for slot in others)
        if (_WAY.search if is_open_too else _WAY.match)(text):
            return True
        if not is_open_too:
            return False
        names = [piece.strip() for piece in re.split(r"\band\b|和", text)]
        is_listed = len(names) > 1 and all(map(_is_short_name, names))
        return is_listed or len([*pieces_of(text)]) > 1

    def _claim_formed_answer(self, asked: Slot) -> bool | None:
        """Take yes or no; or a short text that is no value, so that the user is told so."""
        if asked.type == "boolean":
            pieces = [span for span in pieces_of(self.text) if self.claims.is_free(span)]
            values = {span: to_boolean(self.text[slice(*span)]) for span in pieces}
            given = [span for span in pieces if values[span] is not None]
            self.claims.add(Claim(span, asked.name, values[span]) for span in given)
            return None
        others = [claim for claim in self.claims.found if claim.slot != asked.name]
        is_other = any(claim.slot or self._is_hidden(claim) for claim in others)
        text = self.said.strip()
        is_short = count_words(text) < _FEW and to_text(text) is not None
        if is_other or not text or not is_short or is_no_answer(text):
            return None
        self.named[asked.name] = text
        self.guessed.add(asked.name)
        return bool(asked.pattern or asked.choices)


def _is_short_name(text: str) -> bool:
    is_name = NAME.fullmatch(text) is not None or not text.isascii()
    return is_name and count_words(text) < _FEW and not any(sign.isdigit() for sign in text)
