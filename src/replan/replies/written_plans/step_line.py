"""The line of a step in whatever way a model wrote it: what to do, who does it, and after what.

A line is cut into its brackets, its mentions and the pieces between separators. Each is read by
what is in it, in any place; what is neither a name nor an order stays text.
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from replan.plan.markdown import words
from replan.plan.markdown.attributes import Attributes
from replan.plan.markdown.phrases import read_phrases
from replan.replies.vocabulary.naming import Names
from replan.replies.written_plans.order_phrases import (
    begins_with_keyword,
    read_order,
    speaks_of_order,
)
from replan.replies.written_plans.pieces import (
    PAIRS,
    groups,
    is_misspelt,
    pieces,
    trimmed,
    uncommented,
)

_LONGEST_GROUP = 600
_LONGEST_LINE = 4_000
_MOST_EDGES = 8
_NAME = r"[\w][\w.-]{0,60}"
_MENTION = re.compile(
    rf"(?<![\w.+@-])[`*_]{{0,2}}[@＠]\s?[{{\[`*_]{{0,2}}({_NAME})[}}\]`*_]{{0,3}}"
)
_MORE_WORDS = re.compile(r"(?:[ _-]\w{1,30}){1,2}")
_BETWEEN = re.compile(
    r"(?:(?<!\s)\s++)?(?://|[,;|，；、،؛:：]|(?<=\s)[-–—]{1,2}(?=\s)|→|⇒|->|=>|(?=←|<-))\s*+|(?<=[.。])\s++"
)
_LABELLED = re.compile(
    rf"[*_`]{{0,2}}(?:{words.ASSIGNED_TO})[*_`]{{0,2}}(?:\s*+[:：=]\s*+|\s++)[*_`]{{0,2}}(?:the\s++)?"
    r"(?P<name>\S.{0,80})",
    re.IGNORECASE | re.DOTALL,
)
_ROLE_BEFORE = re.compile(
    rf"(?<![\s,;|，；])[\s,;|，；]++(?:{words.ASSIGNED_TO})\s*+[:：=]\s*+$", re.IGNORECASE
)
_BETWEEN_NAMES = re.compile(rf"(?:(?<!\s)\s++)?(?:[,&+/，、]|(?<=\s)(?:{words.AND})(?=\s))\s*+")
_KEYED = re.compile(r"[^:：=]{1,40}[:：=]\s*(?P<value>\S.{0,80})")
_BY = re.compile(rf"\s{words.BY}\s+(?:the\s+)?(?P<name>\S{{1,60}}(?:\s\S{{1,30}})?)$")
_STRESSED = re.compile(r"(?P<mark>\*\*|__|[*_`])(?P<name>[^*_`]{1,60}(?:_[^*_`]{1,60})*)(?P=mark)")
_LINK = re.compile(r"\]\([^()\s]{0,200}\)")
_ESCAPED = re.compile(r"\\(?=[\[\](){}.#*_`<>~|:-])")
_TAG = re.compile(r"<br\s*/?>|</?(?:li|p|b|i|strong|em|span)>", re.IGNORECASE)
_JOINS = re.compile(rf"[,&+/，、]|{words.AND}", re.IGNORECASE)
_GENITIVE = ("'", "\u2019")
_MARKS = " \t*_`~."
_STRESS_SIGNS = ("*", "_", "`")


@dataclass(slots=True)
class StepLine:
    text: str = ""  # what is to be done
    # Names of the team, and unknown names as they were written.
    who: list[str] = field(default_factory=list[str])
    # The labels of other steps, and the signs for the one above and for all above.
    waits: list[str] = field(default_factory=list[str])
    # Everything else that a step can have.
    attributes: Attributes = field(default_factory=Attributes)
    unread: list[str] = field(default_factory=list[str])  # looks like an attribute but is not one


def read_line(
    text: str,
    names: Names,
    labels: Collection[str],
    titles: Callable[[str], str | None] = lambda _: None,
) -> StepLine:
    if len(text) > _LONGEST_LINE:
        return StepLine(text=text.strip())
    return _Reader(names, labels, titles).read(text)


@dataclass(slots=True)
class _Tail:
    """A mention, and the text behind it."""

    name: str  # of the team, or as written
    written: str
    text: str


class _Reader:
    def __init__(
        self, names: Names, labels: Collection[str], titles: Callable[[str], str | None]
    ) -> None:
        self._names = names
        self._labels = labels
        self._titles = titles
        self._line = StepLine()

    def read(self, text: str) -> StepLine:
        text = _TAG.sub(" ", _ESCAPED.sub("", uncommented(text))).rstrip(" \t\\")
        text = _LINK.sub("]", text)
        text = self._without_groups(text)
        of_groups = len(self._line.who)
        text, tails = self._without_mentions(text)
        text = self._without_edges(text, behind=False)
        rests = [self._without_edges(tail.text, behind=True) for tail in tails]
        spoken_of = _spoken_of(text, tails, rests)
        # If nobody else is named, those who are spoken of do it.
        is_alone = not self._line.who and all(spoken_of)
        self._line.who[of_groups:of_groups] = [
            each.name
            for each, is_text in zip(tails, spoken_of, strict=True)
            if is_alone or not is_text
        ]
        self._line.text = trimmed(_joined(text, tails, rests, spoken_of))
        return self._line

    def _without_groups(self, text: str) -> str:
        """Take out the brackets that say who or when; anything else they say stays in brackets."""
        kept: list[str] = []
        only_text: set[str] = set()  # a hostile line has the same bracket hundreds of times
        at = 0
        for start, end in groups(text):
            before, content = text[at:start], text[start + 1 : end]
            is_behind = _ends_with_mention(before)
            rest = None
            if is_behind or content not in only_text:
                rest = self._read_group(content, behind=is_behind)
            if rest is None and not is_behind:
                only_text.add(content)
            if rest is None:
                kept.append(text[at : end + 1])
            else:
                kept.append(before.rstrip("*_`@＠") + (f" ({rest}) " if rest else " "))
            at = end + 1
            while rest is not None and text[at : at + 1] in _STRESS_SIGNS:
                at += 1
        kept.append(self._without_open(text[at:]))
        return "".join(kept)

    def _without_open(self, text: str) -> str:
        """Take off a bracket that is never closed: the line was cut off there."""
        places = [at for sign in "(（[{" if (at := text.rfind(sign)) >= 0]
        start = max(places, default=-1)
        if start < 0 or PAIRS[text[start]] in text[start:]:
            return text
        self._line.unread.append(text[start:])
        return text[:start]

    def _read_group(self, content: str, *, behind: bool) -> str | None:
        """Read the content of a bracket; return the rest of it, or None if it is only text."""
        if len(content) > _LONGEST_GROUP:
            return None
        before = (len(self._line.who), len(self._line.waits), self._line.attributes)
        if self._read_attributes(content) or self._read_order(content, is_alone=True):
            return ""
        rest: list[str] = []
        only_text: set[str] = set()  # as above: a piece may be there hundreds of times
        was_order = False
        for piece in pieces(content):
            if piece in only_text and not was_order:
                rest.append(piece)
                continue
            is_order = self._read_order(piece, is_alone=True, goes_on=was_order)
            if not (
                is_order or self._read_who(piece, is_keyed=True) or self._read_attributes(piece)
            ):
                rest.append(piece)
                only_text.add(piece)
            was_order = is_order or (was_order and not rest)
        if len(self._line.waits) > before[1]:
            self._line.unread += [piece for piece in rest if not piece[0].isdigit()]
        elif behind:
            self._line.unread += [
                piece for piece in rest if is_misspelt(piece) or speaks_of_order(piece)
            ]
        found = (len(self._line.who), len(self._line.waits), self._line.attributes)
        return None if found == before else ", ".join(rest)

    def _without_mentions(self, text: str) -> tuple[str, list[_Tail]]:
        """Take out all mentions; return the text before the first one, and each with its tail."""
        tails: list[_Tail] = []
        first, at = text, 0
        while found := _MENTION.search(text, at):
            before = _ROLE_BEFORE.sub("", text[at : found.start()])
            if tails:
                tails[-1].text = before
            else:
                first = before
            name, at = self._mentioned(text, found)
            tails.append(_Tail(name, text[found.start(1) : at].rstrip("`*_]}"), text[at:]))
        return first, tails

    def _mentioned(self, text: str, found: re.Match[str]) -> tuple[str, int]:
        written = found[1].rstrip(".-")
        end = found.end() if written == found[1] else found.end(1)
        more = _MORE_WORDS.match(text, end)
        while more and more[0].strip():
            longer = f"{written} {more[0]}"
            if name := self._names.find(longer):
                return name, more.end()
            shorter = more[0].rpartition(" ")[0]
            more = re.compile(re.escape(shorter)).match(text, end) if shorter.strip() else None
        return self._names.find(written) or written, end

    def _without_edges(self, text: str, *, behind: bool) -> str:
        """Remove pieces from both ends of a text while they say who or when."""
        text = trimmed(text)
        for _ in range(_MOST_EDGES if text else 0):
            shorter = self._without_end(text, behind=behind)
            if shorter is None or shorter == text:
                break
            text = trimmed(shorter)
        if (
            not behind
            and (first := _BETWEEN.search(text))
            and self._read_who(text[: first.start()])
        ):
            text = text[first.end() :]
        return trimmed(text)

    def _without_end(self, text: str, *, behind: bool) -> str | None:
        """Remove the last piece of a text if it says who or when; None if it does not."""
        if self._read_order(text, is_alone=behind, is_strong=True) or (
            behind and self._read_attributes(text)
        ):
            return ""
        cuts = [found for found in _BETWEEN.finditer(text) if found.end() > found.start()][-8:]
        for cut in cuts:
            piece = text[cut.end() :]
            if self._read_order(piece, is_alone=True, is_strong=True):
                return text[: cut.start()]
        for cut in cuts[-2:]:  # the last but one, since a key has its own sign: `owner: coder`
            piece = text[cut.end() :]
            if self._read_who(piece) or (behind and self._read_attributes(piece)):
                return text[: cut.start()]
        return self._without_last_words(text)

    def _without_last_words(self, text: str) -> str | None:
        if (by := _BY.search(text[-120:])) and (name := self._names.find(_bare(by["name"]))):
            self._line.who.append(name)
            return text[: max(0, len(text) - 120) + by.start()]
        marked = [found for found in _STRESSED.finditer(text) if found.end() == len(text)]
        if marked and (name := self._names.find(marked[-1]["name"])):
            self._line.who.append(name)
            return text[: marked[-1].start()]
        return None

    def _read_order(
        self, text: str, *, is_alone: bool = False, goes_on: bool = False, is_strong: bool = False
    ) -> bool:
        order = read_order(text.strip(_MARKS), self._labels)
        if order is None:
            return self._read_titles(text)
        is_said = order.is_strong if is_strong else order.is_said
        only_none = not order.refs and is_alone and not is_strong
        if not (is_said or (goes_on and order.refs) or only_none):
            return False
        self._line.waits += order.refs
        return True

    def _read_titles(self, text: str) -> bool:
        if not begins_with_keyword(text):
            return False
        quoted = re.split(r"(?:^\S+\s+|[\"“”'«»*]\s*[,，、]\s*(?=[\"“'«*]))", text.strip())
        labels = [self._titles(each.strip(" \"'“”«»*:")) for each in quoted if each.strip()]
        found = [label for label in labels if label is not None]
        if not found or len(found) < len(labels):
            return False
        self._line.waits += found
        return True

    def _read_who(self, text: str, *, is_keyed: bool = False) -> bool:
        """Read a piece that only says who does the step, with any key or none."""
        text = text.strip(_MARKS)
        keyed = _KEYED.fullmatch(text) if is_keyed else None
        if keyed and (name := self._names.find(_bare(keyed["value"]))):
            self._line.who.append(name)
            return True
        labelled = _LABELLED.fullmatch(text)
        written = _bare(labelled["name"] if labelled else text)
        if not written or len(written) > _LONGEST_GROUP:
            return False
        many = _BETWEEN_NAMES.split(written)
        found = [self._names.find(name) for name in many if name]
        if found and all(found):
            self._line.who += [name for name in found if name]
            return True
        if labelled and re.fullmatch(words.NONE, written, re.IGNORECASE):
            return True
        is_name = re.fullmatch(rf"@?{_NAME}", written) is not None
        if is_name and (written[0] == "@" or (labelled and re.search("[:：=@]", text))):
            self._line.who.append(written.lstrip("@"))
            return True
        return False

    def _read_attributes(self, text: str) -> bool:
        """Read attributes in the grammar of plans, other than names and order."""
        found: Attributes | None = None
        for phrase in read_phrases(text.strip()):
            if phrase.attributes is None:
                return False
            found = (found or Attributes()) | phrase.attributes
        if found is None:
            return False
        self._line.who += found.specialists or ()
        self._line.waits += map(str, found.dependencies or ())
        self._line.attributes |= replace(found, specialists=None, dependencies=None)
        return True


def _spoken_of(text: str, tails: Sequence[_Tail], rests: Sequence[str]) -> list[bool]:
    """Which mentions are words of a sentence, as in `sum up what @coder found`."""
    befores = [text, *rests][: len(tails)]
    spoken_of = [
        before[-1:].isalnum()
        and rest != ""
        and (tail.text.lstrip()[:1].isalnum() or rest[:1] in _GENITIVE)
        for before, tail, rest in zip(befores, tails, rests, strict=True)
    ]
    # Of `@a and @b review it`, both are the one or the other.
    for at in range(1, len(tails)):
        if _JOINS.fullmatch(rests[at - 1]):
            spoken_of[at] = spoken_of[at - 1] = spoken_of[at] and spoken_of[at - 1]
    return spoken_of


def _joined(
    text: str, tails: Sequence[_Tail], rests: Sequence[str], spoken_of: Sequence[bool]
) -> str:
    """The text of a line without the mentions that say who does it."""
    for tail, rest, is_text in zip(tails, rests, spoken_of, strict=True):
        if is_text:
            text = f"{text} {tail.written}{'' if rest[:1] in _GENITIVE else ' '}{rest}"
        elif tail is tails[-1] or not _JOINS.fullmatch(rest):
            sign = tail.text.lstrip()[:1] if tail.text.lstrip()[:1] in ":;,—" else ""
            text = f"{text}{sign} {rest}" if text and rest else text or rest
    return text


def _ends_with_mention(text: str) -> bool:
    last = text.rstrip().rpartition(" ")[2]
    return "@" in last or "＠" in last


def _bare(text: str) -> str:
    return text.strip(_MARKS + "()[]<>{}\"'“”.;:")
