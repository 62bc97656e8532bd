"""The words of a text, and which texts fit a query best, by SQLite's full text search.

Some scripts set no blanks between words. There each sign is a word of the index, and what is looked
for is each two signs that are side by side.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from unicodedata import normalize

TOKENIZER = "porter unicode61 remove_diacritics 2"
"""How an index of divided texts takes its words."""

_WORD = re.compile(r"[^\W_]+")
_SIGN = (
    r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]"
)
_UNDIVIDED = re.compile(_SIGN)
_NAME = re.compile(r"\b\w*[a-z][A-Z]\w*")
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_RUN = re.compile(f"{_SIGN}+")


_FUNCTION_WORDS = frozenset(
    _WORD.findall(
        "a about an and are as at be been by can could did do does for from had has have how i if "
        "in is it its me my of on or our shall should so than that the their them there these they "
        "this to was we were what when where which who whom whose why will with would you your"
    )
)
"""English words that are in texts about anything."""


def indexed(text: str) -> str:
    """Write a text as an index is to take it: each sign of an undivided script is a word.

    Letters that can be written in several ways are written in one.
    """
    return text if text.isascii() else _UNDIVIDED.sub(r" \g<0> ", _in_one_way(text))


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text, each once."""
    folded = text if text.isascii() else _in_one_way(text)
    # The small form of a Turkish letter has a dot that is alone.
    return tuple(dict.fromkeys(_WORD.findall(folded.casefold().replace("\u0307", ""))))


def any_of(words: tuple[str, ...]) -> str:
    """Write a query for texts that have some of the words, as they are."""
    return " OR ".join(f'"{indexed(word)}"' for word in words)


def terms_of(text: str) -> tuple[str, ...]:
    """What to look for where a whole text is the question."""
    found = (term for word in words_of(with_parts(text)) for term in _terms_in(word))
    return tuple(dict.fromkeys(found))


def telling(terms: tuple[str, ...]) -> tuple[str, ...]:
    """The terms of a question that say what it is about; all of them if there are no others."""
    return tuple(term for term in terms if term not in _FUNCTION_WORDS) or terms


def with_parts(text: str) -> str:
    """Add the parts of names such as getEventType to a text."""
    parts = (part for name in _NAME.findall(text) for part in _PART.findall(name))
    return " ".join((text, *parts))


def _in_one_way(text: str) -> str:
    # An index takes capitals for small letters and leaves accents out by itself.
    return normalize("NFKC", text).replace("\u00df", "ss").replace("\u1e9e", "SS")


def _terms_in(word: str) -> Iterator[str]:
    position = 0
    for ideograms in _RUN.finditer(word):
        if word[position : ideograms.start()]:
            yield word[position : ideograms.start()]
        characters, position = ideograms.group(), ideograms.end()
        yield from (characters[i : i + 2] for i in range(max(1, len(characters) - 1)))
    if word[position:]:
        yield word[position:]


_MOST_TERMS = 48
_HALF = 10.0  # where bm25 is this, the score is one half

_TEXTS = f"CREATE VIRTUAL TABLE texts USING fts5(text, tokenize = '{TOKENIZER}')"
_RANKED = """
SELECT rowid, bm25(texts) AS far FROM texts WHERE texts MATCH ? ORDER BY far, rowid DESC"""


def rank(query: str, texts: Sequence[str]) -> list[tuple[int, float]]:
    """Return the places of the texts that have words of a query, and their scores.

    The best come first, of equally good ones the last. A score is between 0 and 1; it orders the
    texts of one query and does not say how good a text is.
    """
    import sqlite3  # noqa: PLC0415 - only a search needs it

    terms = terms_of(query)[:_MOST_TERMS]
    if not terms or not texts:
        return []
    rows = ((place, indexed(with_parts(text).casefold())) for place, text in enumerate(texts))
    with closing(sqlite3.connect(":memory:")) as index:
        index.execute(_TEXTS)
        index.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", rows)
        found = index.execute(_RANKED, (any_of(terms),)).fetchall()
    return [(place, -far / (_HALF - far)) for place, far in found]
