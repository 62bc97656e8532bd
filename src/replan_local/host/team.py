"""Choose who of a team fits a clause, or find honestly that nobody does."""

import re
from collections.abc import Sequence

from replan.prompts.sections import sections_of
from replan.state.team import SpecialistCard, best_cards

_CARD = re.compile(r"^-\s+@(?P<name>[^\s:]+):\s*(?P<rest>.*)$")
_CAPABILITIES = re.compile(r"(?:(?<!\s)\s++)?\bCapabilities:\s*+")
_NEEDS_INPUTS = re.compile(
    r"\b(?:earlier|previous|preceding|other)\s+(?:steps|results)\b", re.IGNORECASE
)
_COMPUTES = re.compile(r"\barithmetic\b", re.IGNORECASE)
_ENDING = re.compile(r"\.(?P<ending>[A-Za-z0-9]{2,8})$")
_WEB = re.compile(r"\b(?:web|internet|online|google|news|weather)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+")
_BY_GROUP = re.compile(r"\bby\s+(?=[a-z])")
# These words say nothing about who can do a task, or they fit everybody.
_EMPTY_WORDS = frozenset(
    re.findall(
        r"\S+",
        "a about all an and any are as at be both but by can could create do does for from "
        "generate get give has have how i if in into is it its list make me my no not of on "
        "one or our out please produce s see show so some step t tell than that the their "
        "them then there these this those to two use was we what when where which who why "
        "will with would write you your",
    )
)
_MEANINGS = (
    (re.compile(r"%"), "percent"),
    (
        re.compile(
            r"(?m)^(?>.*?\bwhat\b).*\b(?:say|says|said|stands?)\b|\bmentions?\b|\baccording\s+to\b"
        ),
        "passages",
    ),
    (re.compile(r"\b(?:draw|plot|graph|diagram)\b"), "chart"),
)
_GLOSSARY = (
    ("报告", "report"),
    ("总结", "summary"),
    ("比较", "compare"),
    ("对比", "compare"),
    ("概览", "profile"),
    ("表", "table"),
    ("总", "total"),
    ("合计", "total"),
    ("平均", "average"),
    ("数量", "count"),
    ("统计", "count"),
    ("最大", "maximum"),
    ("最小", "minimum"),
    ("按", "per group"),
    ("每", "per group"),
    ("结果", "results"),
    ("笔记", "notes"),
    ("文档", "documents"),
    ("查找", "passages"),
    ("搜索", "passages"),
    ("图", "chart"),
)


def team_in(*prompts: str) -> tuple[SpecialistCard, ...]:
    """Rebuild the cards from the first team section of some prompts."""
    for prompt in prompts:
        for section in sections_of(prompt):
            if section.tag == "team":
                return tuple(
                    _card(found)
                    for line in section.text.splitlines()
                    if (found := _CARD.match(line.strip()))
                )
    return ()


def best_for(text: str, team: Sequence[SpecialistCard]) -> SpecialistCard | None:
    """The member whose card fits best; none if no word that matters is shared with any card."""
    if _WEB.search(text):
        # "Search the web" is work for those only who say that they can.
        team = [card for card in team if _WEB.search(_all_of(card))]
    return next(iter(best_cards(_meant_words(text), team)), None)


def needs_inputs(card: SpecialistCard) -> bool:
    """Whether a card says of itself that it works on what other steps found."""
    return _NEEDS_INPUTS.search(card.intended_use) is not None


def computes(card: SpecialistCard) -> bool:
    """Whether a card says of itself that it works on numbers given or found before."""
    return _COMPUTES.search(card.intended_use) is not None


def reads(card: SpecialistCard, file: str, team: Sequence[SpecialistCard]) -> bool:
    """Whether a file is for this member: no other one, but not this one, names its kind."""
    ending = _ENDING.search(file)
    if ending is None:
        return True
    word = re.compile(rf"\b{re.escape(ending['ending'])}\b", re.IGNORECASE)
    naming = [each.name for each in team if word.search(_all_of(each))]
    return not naming or card.name in naming


def telling_words(text: str) -> frozenset[str]:
    """The words of a text that tell what it is about, in the singular."""
    return frozenset(word.removesuffix("s") for word in _meant_words(text).split())


def workers_of(team: Sequence[SpecialistCard]) -> tuple[SpecialistCard, ...]:
    """Those who can begin with nothing but the request."""
    return tuple(card for card in team if not needs_inputs(card))


def joiners_of(team: Sequence[SpecialistCard]) -> tuple[SpecialistCard, ...]:
    """Those who work on what other steps found."""
    return tuple(card for card in team if needs_inputs(card))


def _card(found: re.Match[str]) -> SpecialistCard:
    use, *rest = _CAPABILITIES.split(found["rest"], maxsplit=1)
    capabilities = tuple(part.strip() for part in rest[0].split(";")) if rest else ()
    return SpecialistCard(
        name=found["name"],
        intended_use=use,
        capabilities=tuple(part for part in capabilities if part),
    )


def _all_of(card: SpecialistCard) -> str:
    return " ".join((card.name, card.intended_use, *card.capabilities))


def _meant_words(text: str) -> str:
    for word, meaning in _GLOSSARY:
        text = text.replace(word, f" {meaning} ")
    text = _BY_GROUP.sub("per ", text.casefold())
    meant = [meaning for pattern, meaning in _MEANINGS if pattern.search(text)]
    words = (word for word in _WORD.findall(text) if word not in _EMPTY_WORDS)
    return " ".join((*words, *meant))
