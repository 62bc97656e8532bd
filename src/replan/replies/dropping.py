"""The steps of a plan that a reply removes explicitly, by words or by crossing them out."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from replan.plan.changes import title_key
from replan.plan.markdown import words as plan_words
from replan.plan.markdown.reading import read_document
from replan.plan.model import PlanStep, StepStatus
from replan.replies.vocabulary import words


def crossed_out(text: str) -> str:
    """Write the lines of steps that are struck through as steps that are marked as left out."""
    if "~~" not in text:
        return text
    return "\n".join(_STRUCK.sub(_marked, line) for line in text.split("\n"))


def removed_steps(
    old: Sequence[PlanStep], new: Sequence[PlanStep], texts: Iterable[str]
) -> frozenset[int]:
    """Return the steps that a revision marks with `[-]`, or omits and declares removed."""
    known = {step.id: step for step in old}
    mentioned = {step.id for step in new}
    unsaid = [step for step in old if not step.is_finished and step.id not in mentioned]
    crossed = {step.id for step in new if _is_crossed(known.get(step.id), step)}
    named = {each for text in texts for each in _named_in(_prose(text), unsaid)} if unsaid else ()
    return frozenset(crossed.union(named))


def _is_crossed(old: PlanStep | None, new: PlanStep) -> bool:
    """Whether the line of a step removes it: by its mark, or by words such as "(removed)"."""
    if old is None or old.is_finished or new.status is StepStatus.SKIPPED:
        return new.status is StepStatus.SKIPPED and not (old and old.is_finished)
    if title_key(old) == title_key(new):
        return False
    rest = new.description.casefold().replace(title_key(old), "")
    return _numbers_removed(f"{rest} {old.id}") == {old.id}


def _named_in(text: str, steps: Iterable[PlanStep]) -> set[int]:
    ids = {step.id for step in steps}
    text = " ".join(text.casefold().replace("*", "").replace("`", "").split(" "))
    for step in sorted(steps, key=lambda step: -len(step.description)):
        text = text.replace(title_key(step), f" {step.id} ")
    text = _RANGE.sub(_listed, text)
    clauses = (*_SENTENCES.split(text), *_CLAUSES.split(text))
    return ids & {number for clause in clauses for number in _numbers_removed(clause)}


def _numbers_removed(clause: str) -> set[int]:
    """Return the numbers of steps in a clause that only says that they are removed."""
    rest, removals = _REMOVED.subn(" ", _SUCCESSOR.sub(" ", clause))
    if not removals:
        return set()
    rest = _FILLERS.sub(" ", rest)
    if re.search(r"[^\W\d]", rest):
        return set()
    return {int(number) for number in re.findall(r"(?<!\d)\d{1,9}(?!\d)", rest)}


def _prose(text: str) -> str:
    """Return a text without its lines of steps, and without what is not part of the reply."""
    text = text[:_LONGEST]
    inside = {
        at
        for block in read_document(text).blocks
        for at in range(block.item.start, block.item.start + block.head)
    }
    return "\n".join(
        line
        for at, line in enumerate(text.split("\n"))
        if at not in inside and not _MARKED.match(line)
    )


def _listed(match: re.Match[str]) -> str:
    first, last = int(match[1]), int(match[2])
    if not first < last < first + _LONGEST_RANGE:
        return match[0]
    return " ".join(str(number) for number in range(first, last + 1))


def _marked(match: re.Match[str]) -> str:
    """Write a struck line of a step with its mark; text behind it is a new wording."""
    inner = _HEAD.sub("", match["inner"] or match["all"], count=1)
    tail = match["tail"] or ""
    if not re.search(r"\w", inner) or re.search(r"\w", _ATTRIBUTES.sub("", tail)):
        return match[0]
    return f"- [-] {match['number'] or ''}{inner.strip()}{tail}"


def _any_of(found: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern for any of some words; those of scripts without blanks may be anywhere."""
    ordered = sorted({word.casefold() for word in found}, key=lambda word: (-len(word), word))
    kinds: dict[bool, list[str]] = {False: [], True: []}
    for word in ordered:
        is_wide = _is_wide(word[0]) or _is_wide(word[-1])
        kinds[is_wide].append(re.escape(word).replace(r"\ ", r"\s+"))
    # What begins with a look around is tried at every place, so there is one for all words.
    alone = rf"(?<!\w)(?:{'|'.join(kinds[False])})(?!\w)"
    return re.compile("|".join([alone, *kinds[True]]))


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"


def _fillers() -> Iterator[str]:
    yield from words("dropping", "fillers")
    for name in ("step", "and"):
        yield from filter(str.isalpha, plan_words.listed(name))


_LONGEST_RANGE = 100
_LONGEST = 20_000
"""The most characters of a text that are searched; steps named only after them stay."""
_MARKED = re.compile(r"\s*+(?:(?:[-*+]|\d{1,9}[.)])\s*+)?\[[^\]]?\]\s")
_HEAD = re.compile(r"\s*+(?:[-*+]\s++)?(?:\[[^\]]?\]\s*+)?")
_STRUCK = re.compile(
    r"^\s*+(?:~~(?P<all>[^~]++)~~\s*+"
    r"|(?:[-*+]\s++)?(?:\[[^\]]?\]\s*+)?(?P<number>\d{1,9}[.)]\s++)?(?:\[[^\]]?\]\s*+)?"
    r"~~(?P<inner>[^~]++)~~(?P<tail>[^~]*+))$"
)
_ATTRIBUTES = re.compile(r"@[\w.-]+|\([^()]*\)")
_RANGE = re.compile(r"(\d{1,4})\s*+[-–—]\s*+(\d{1,4})")
_REMOVED = _any_of(words("dropping", "removed"))
_FILLERS = _any_of(_fillers())
_BECAUSE = _any_of(words("dropping", "because")).pattern
_AND = "|".join(re.escape(word) for word in plan_words.listed("and"))
_BREAKS = rf"[,，、،](?!\s*+(?:(?:{_AND})\s*+)?#?\d)|(?:{_BECAUSE})"
_SENTENCES = re.compile(rf"[\n.!?;…。；\uff01\uff1f]|{_BREAKS}")
_CLAUSES = re.compile(rf"[\n.!?;…。；\uff01\uff1f:：()（）\[\]—–]|{_BREAKS}")
_SUCCESSOR = re.compile(
    rf"(?:{_any_of(words('dropping', 'successor')).pattern})\s*+(?:(?:{plan_words.STEP})\s*+)?"
    rf"#?\d++(?:\s*+(?:{_AND})\s*+#?\d++)*+"
)
"""What replaces a step: "by step 5"."""
