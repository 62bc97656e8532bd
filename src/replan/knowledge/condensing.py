"""Chunks as a model condenses them, with a fallback if it fails."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from langchain_core.messages import BaseMessage

from replan.base.failures import describe, is_fatal_for_run
from replan.base.secrets.masking import with_masked_traceback
from replan.models.spending.deadline import HasDeadline, in_time
from replan.prompts.replies.citations import cited, cited_among
from replan.prompts.replies.readings import read_answer
from replan.prompts.sections import (
    build_knowledge_prompt,
    knowledge_text,
    place_of,
    source_of,
    within_budget,
)
from replan.state.knowledge import Chunk, Knowledge, RAGOptions

logger = logging.getLogger(__name__)
logger.addFilter(with_masked_traceback)

LONGEST_NOTE = 8_000
"""The most characters of what a model extracts from a chunk."""

Ask = Callable[[list[BaseMessage]], Awaitable[str]]
"""Asks a model, and pays for it."""

_NOTHING = "none"
_NO_HELP = "nothing in it helps"


class _Note(NamedTuple):
    """A model's notes on a text: empty if nothing in it helps, or if the call failed."""

    text: str = ""
    error: str = ""


@dataclass(frozen=True)
class ChunkReader:
    """Everything needed to have chunks read for a task."""

    options: RAGOptions
    task: str
    timed: HasDeadline  # whose time it takes
    ask: Ask

    async def read(self, chunks: Sequence[Chunk]) -> Knowledge:
        """Return the chunks, or what a model makes of them; the chunks again if that fails."""
        if not chunks:
            return Knowledge()
        if self.options.mode == "map_reduce":
            return await self._read_each(chunks)
        return await self._as_found(chunks)

    async def _read_each(self, chunks: Sequence[Chunk]) -> Knowledge:
        """Have a model write notes on each chunk, and put the notes together."""
        most = self.options.given["map_max_chunks"]
        notes = [*zip(chunks, await self._notes(chunks[:most]), strict=False)]
        failed = tuple(_failures(notes))
        if all(note.error for _, note in notes):
            errors = "; ".join(dict.fromkeys(note.error for _, note in notes))
            why = f"No model read what was found, so all is given as it was found: {errors}."
            return await self._as_found(chunks, (why,))
        useful = [chunk for chunk, note in notes if note.text]
        text = "\n\n".join(note.text for _, note in notes if note.text)
        if len(useful) > 1:
            together = await self._note(text)
            if together.error:
                why = "What was read is not put together, so all is given as it was found"
                return await self._as_found(chunks, (*failed, f"{why}: {together.error}."))
            text = together.text or text
        knowledge = _citing(text, useful)
        unused = [
            *(
                f"{place_of(chunk)} is not read: map_max_chunks is {most}."
                for chunk in chunks[most:]
            ),
            *_unused((chunk for chunk, note in notes if note == _Note()), _NO_HELP),
        ]
        return knowledge.replace(unused=(*unused, *knowledge.unused), failed=failed)

    async def _as_found(self, chunks: Sequence[Chunk], failed: tuple[str, ...] = ()) -> Knowledge:
        """Give the chunks as they are, or one text that a model made of all."""
        text = knowledge_text(chunks)
        as_found = Knowledge(text=text, sources=tuple(map(source_of, chunks)), failed=failed)
        if not self.options.use_summary:
            return as_found
        note = await self._note(text)
        if note.error:
            why = f"What was found is not made shorter: {note.error}."
            return as_found.replace(failed=(*failed, why))
        if not note.text:
            return Knowledge(unused=tuple(_unused(chunks, _NO_HELP)), failed=failed)
        return _citing(note.text, chunks).replace(failed=failed)

    async def _notes(self, chunks: Sequence[Chunk]) -> list[_Note]:
        """Have all chunks read concurrently."""
        # Each that is begun is paid for, so all come to their end before an error ends the work.
        tried = await asyncio.gather(
            *(self._note(knowledge_text([chunk])) for chunk in chunks), return_exceptions=True
        )
        for note in tried:
            if isinstance(note, BaseException):
                raise note
        return [note for note in tried if isinstance(note, _Note)]

    async def _note(self, text: str) -> _Note:
        """Ask the model what a text says about the task."""
        prompt = build_knowledge_prompt(self.task, text)
        seconds = self.options.given["timeout_seconds"]
        try:
            reply = await in_time(partial(self.ask, prompt), self.timed, seconds)
        except Exception as error:
            if is_fatal_for_run(error):
                raise
            logger.warning("knowledge was not read", exc_info=True)
            return _Note(error=describe(error).rstrip("."))
        text_read = read_answer(reply).body.strip()
        if not text_read:
            return _Note(error="the model returned an empty reply")
        is_nothing = text_read.strip(".*`\"'").casefold() == _NOTHING
        return _Note() if is_nothing else _Note(within_budget(text_read, LONGEST_NOTE))


def _citing(text: str, chunks: Sequence[Chunk]) -> Knowledge:
    """A text made of chunks, and the chunks that it cites; without a mark, all of them."""
    sources = tuple(map(source_of, chunks))
    text, named = cited(text, sources)[0], cited_among(text, sources)
    left = [chunk for chunk in chunks if named and source_of(chunk) not in named]
    unused = tuple(_unused(left, "the text that was made does not cite it"))
    return Knowledge(text=text, sources=named or sources, unused=unused)


def _unused(chunks: Iterable[Chunk], why: str) -> Iterable[str]:
    return (f"{place_of(chunk)} is not used: {why}." for chunk in chunks)


def _failures(notes: Iterable[tuple[Chunk, _Note]]) -> Iterable[str]:
    """A sentence for each error, with all chunks that were not read because of it."""
    places: dict[str, list[str]] = {}
    for chunk, note in notes:
        if note.error:
            places.setdefault(note.error, []).append(place_of(chunk))
    for error, names in places.items():
        verb = "is" if len(names) == 1 else "are"
        yield f"{', '.join(names)} {verb} left out: {error}."
