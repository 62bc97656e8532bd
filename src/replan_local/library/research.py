"""Find out what a step looks for in which texts, and quote it; all of it in one thread."""

import re
import threading
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from pydantic import Field, JsonValue

from replan.plan.model import Value
from replan_local.answering import Answer
from replan_local.folder import FolderFile, find_file
from replan_local.library.index import Hit, Index
from replan_local.library.terms import terms_of, words_in
from replan_local.library.texts import (
    KINDS,
    Passage,
    bounds_met,
    passages_of,
    text_files,
)
from replan_local.parameters import (
    given_count,
    given_names,
    given_text,
    refuse_misspelt,
)
from replan_local.refusals import CannotAnswerError, did_you_mean
from replan_local.words import joined, words_of

PARAMETERS = ("query", "top", "file")
"""The parameters that a step may give."""

_FILE = re.compile(
    r"(?<![^\s,;:'\"()`\[\]])[^\s,;:'\"()`\[\]]*[^\s,;:'\"()`./\[\]]\.(?:txt|md|rst)\b",
    re.IGNORECASE,
)
_BRACKETS = re.compile(r"\[[^\[\]]*\]")
_USUAL, _MOST = 3, 20
_MOST_PASSAGES = 50_000
_LOWEST, _BY_COVERAGE, _BY_LEAD = 0.4, 0.4, 0.15
_WORTH, _NEAR_WORD = 0.5, 0.78


class Search(Value):
    """A step as the librarian reads it.

    Attributes:
        text: The step's line.
        brief: The free text under it; read only where the line says nothing to look for.
    """

    text: str
    brief: str = ""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)


class Research:
    """One step's work on the texts of a folder; may be stopped from another thread."""

    def __init__(self, directory: Path, search: Search) -> None:
        self._directory = directory
        self._search = search
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End the work at the next file."""
        self._stopped.set()

    def answer(self) -> Answer:
        """Quote the best passages.

        Raises:
            CannotAnswerError: Nothing is found, or nothing is asked; the message says why.
        """
        refuse_misspelt(self._search.parameters, PARAMETERS)
        files = text_files(self._directory)
        if not files:
            message = f"There is nothing to read in the folder: no file ends in {joined(KINDS)}."
            raise CannotAnswerError(message)
        named = [find_file(name, files, "text") for name in self._named_files()]
        passages = self._read(named or files)
        terms = self._terms()
        top = min(given_count(self._search.parameters, "top") or _USUAL, _MOST)
        if not terms:
            return _opening(named, passages, top)
        index = Index(passages)
        try:
            hits = index.find(terms)
        finally:
            index.close()
        hits = self._preferred(hits, files)
        if not hits:
            raise _nothing(terms, named or files, passages)
        return _quoted(terms, hits, top, bounds_met(named or files))

    def _named_files(self) -> tuple[str, ...]:
        found = _FILE.findall(_BRACKETS.sub(" ", self._search.text))
        return given_names(self._search.parameters, "file") or tuple(dict.fromkeys(found))

    def _terms(self) -> tuple[str, ...]:
        query = given_text(self._search.parameters, "query")
        if query:
            return terms_of(query) or tuple(dict.fromkeys(words_in(query)))
        for text in (self._search.text, self._search.brief):
            if terms := terms_of(_FILE.sub(" ", _BRACKETS.sub(" ", text))):
                return terms
        return ()

    def _read(self, files: Sequence[FolderFile]) -> list[Passage]:
        passages: list[Passage] = []
        for file in files:
            if self._stopped.is_set() or len(passages) >= _MOST_PASSAGES:
                break
            passages += passages_of(file)
        return passages[:_MOST_PASSAGES]

    def _preferred(self, hits: Sequence[Hit], files: Sequence[FolderFile]) -> Sequence[Hit]:
        """Only the hits below a folder that the step names by a bare word, if there are any."""
        words = set(words_of(_FILE.sub(" ", self._search.text)))
        folders = {part for file in files for part in PurePosixPath(file.name).parts[:-1]}
        meant = {folder for folder in folders if set(words_of(folder)) <= words}
        inside = [hit for hit in hits if meant.intersection(PurePosixPath(hit.passage.file).parts)]
        return inside or hits


def _quoted(terms: Sequence[str], hits: Sequence[Hit], top: int, notes: Sequence[str]) -> Answer:
    best = hits[0]
    # What covers far less of the question than the best one only makes the answer longer.
    worth = [hit for hit in hits if hit.coverage >= _WORTH * best.coverage]
    shown = worth[:top]
    lacking = [term for term in terms if not any(term in hit.terms for hit in shown)]
    files = len({hit.passage.file for hit in worth})
    count = f"{len(shown)} of {_counted(len(worth), 'passage')} in {_counted(files, 'file')}"
    parts = [f"**Passages on {joined(terms)}** ({count})", *(_quote(hit.passage) for hit in shown)]
    if lacking:
        notes = [f"None of these passages speaks of: {', '.join(lacking)}.", *notes]
    parts += ["\n".join(f"- {note}" for note in notes)] if notes else []
    return Answer(text="\n\n".join(parts), confidence=_confidence(worth))


def _confidence(hits: Sequence[Hit]) -> float:
    """How sure the best passage is: it covers the question, and stands out in rank."""
    best, *others = hits
    following = others[0].rank if others else 0.0
    lead = 1 - following / best.rank if best.rank < following <= 0 else 0.0
    return round(_LOWEST + _BY_COVERAGE * best.coverage + _BY_LEAD * lead, 2)


def _opening(named: Sequence[FolderFile], passages: Sequence[Passage], top: int) -> Answer:
    """The first passages of the files that a step names without asking for anything in them."""
    if not named or not passages:
        message = (
            "The step does not say what to look for. Write it into the step's line, "
            "or into the parameter 'query'."
        )
        raise CannotAnswerError(message)
    names = joined([file.name for file in named])
    count = f"{min(top, len(passages))} of {_counted(len(passages), 'passage')}"
    parts = [f"**Beginning of {names}** ({count})", *(_quote(each) for each in passages[:top])]
    return Answer(text="\n\n".join(parts))


def _quote(passage: Passage) -> str:
    """A passage as a block quote that ends in its place."""
    under = f", under: {passage.heading}" if passage.heading else ""
    lines = [*passage.text.splitlines(), "", f"(`{passage.place}`{under})"]
    return "\n".join(f"> {line}".rstrip() for line in lines)


def _nothing(
    terms: Sequence[str], files: Sequence[FolderFile], passages: Sequence[Passage]
) -> CannotAnswerError:
    words = sorted(
        {word for passage in passages for word in words_in(f"{passage.heading} {passage.text}")}
    )
    where = files[0].name if len(files) == 1 else f"the {len(files)} texts of the folder"
    hints = [did_you_mean(term, words, near=_NEAR_WORD) for term in terms]
    if len(terms) == 1:
        return CannotAnswerError(f"No passage in {where} has '{terms[0]}'.{hints[0]}")
    # Whoever mends the step has to know which word a question belongs to.
    lines = [f" '{term}':{hint}" for term, hint in zip(terms, hints, strict=True) if hint]
    return CannotAnswerError(
        f"No passage in {where} has any of these words: {', '.join(terms)}.{''.join(lines)}"
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
