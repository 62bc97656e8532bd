"""The words to look for, and texts as the index reads them, in scripts with and without blanks."""

import re
from collections.abc import Iterator

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")
# Scripts that set no blanks between words: Chinese, Japanese, Thai, Lao, Khmer; Korean endings too.
_UNDIVIDED = re.compile(
    r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
)
_EMPTY = frozenset(
    re.findall(
        r"\S+",
        "a about above after all also an and any are as at be been before but by can could did do "
        "does done for from had has have how i if in into is it its let's may me might must my no "
        "not of off on or our out over shall should so some such than that the their them then "
        "there these they this those to under up us was we were what when where which who whom "
        "whose why will with would you your",
    )
)
_ASKING = frozenset(
    re.findall(
        r"\S+",
        "answer according check cite concerning description document documents exact explain file "
        "files find folder get give information know library list look lookup mention mentioned "
        "mentions note notes passage passages please quote quotes quoted read regarding retrieve "
        "say saying says search show stand stands state stated states summarise summarize tell "
        "tells text texts write written",
    )
)
_ASKING_UNDIVIDED = re.compile(
    r"\u67e5\u627e|\u641c\u7d22|\u5bfb\u627e|\u627e\u51fa|\u5173\u4e8e|\u6211\u4eec\u7684?|\u7b14\u8bb0|\u6587\u6863|\u6587\u4ef6"
    r"|\u4ec0\u4e48|\u600e\u4e48|\u5982\u4f55|\u54ea\u4e9b|\u8bf7|\u91cc\u9762|\u4e2d|\u91cc|\u7684|\u8bf4\u4e86?|\u6709"
)
_MOST_TERMS = 12


def terms_of(question: str) -> tuple[str, ...]:
    """The words of a question that can be looked for, without those that only ask."""
    found = dict.fromkeys(
        word
        for word in _words(_ASKING_UNDIVIDED.sub(" ", question.casefold()))
        if word not in _EMPTY and word not in _ASKING
    )
    return tuple(found)[:_MOST_TERMS]


def indexed(text: str) -> str:
    """A text as the index reads it: words between blanks, undivided scripts in pairs."""
    return " ".join(token for word in _words(text.casefold()) for token in _tokens(word))


def sought(term: str) -> str:
    """A term as the index is asked for it: as a phrase; a single sign begins a pair."""
    phrase = " ".join(_pairs(term) if _UNDIVIDED.fullmatch(term) else (term,))
    single = len(term) == 1 and _UNDIVIDED.fullmatch(term)
    return f'"{phrase}"' + ("*" if single else "")


def words_in(text: str) -> Iterator[str]:
    """The divided words of a text, folded: what a misspelt one may be near to."""
    return (word for word in _words(text.casefold()) if not _UNDIVIDED.fullmatch(word))


def _words(text: str) -> Iterator[str]:
    for found in _WORD.finditer(text):
        word = re.sub(r"['\u2019]s?$|['\u2019]", "", found[0])
        place = 0
        for run in _UNDIVIDED.finditer(word):
            yield from (part for part in (word[place : run.start()], run[0]) if part)
            place = run.end()
        if word[place:]:
            yield word[place:]


def _tokens(word: str) -> tuple[str, ...]:
    if not _UNDIVIDED.fullmatch(word):
        return (word,)
    # The last sign stands alone too, so that it is found where it ends a run.
    return (*_pairs(word), word[-1]) if len(word) > 1 else (word,)


def _pairs(run: str) -> tuple[str, ...]:
    return tuple(run[i : i + 2] for i in range(max(1, len(run) - 1)))
