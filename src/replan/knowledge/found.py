"""What of a retriever's answer counts: pure, with bounds that a retriever may not know of."""

import math
from itertools import chain, islice

from replan.ports.retriever import SearchResponse
from replan.prompts.knowledge_section import place_of
from replan.prompts.sections import within_budget
from replan.state.knowledge import Chunk, RAGOptions
from replan.texts.storable import storable_text

LONGEST_CHUNK = 4_000
"""The most characters of a chunk that are shown; other retrievers may return whole books."""

LONGEST_NAME = 400
"""Characters of a source, a heading, or a sentence of a retriever."""

MOST_TOLD = 20
"""Sentences about what could not be searched."""


def best_of(found: SearchResponse, options: RAGOptions) -> tuple[list[Chunk], tuple[str, ...]]:
    """Return the chunks that count, the best first, and a sentence for each that is left out."""
    least, most = options.said["min_score"], options.said["top_k"]
    odd = [each for each in found.chunks if not math.isfinite(each.score)]
    counting = (each for each in found.chunks if math.isfinite(each.score) and each.score >= least)
    told = (each for each in counting if not each.content.isspace() and each.content)
    best = sorted(told, key=lambda each: -each.score)[:most]
    left_out = [*islice(chain(map(_name, found.left_out), map(_without, odd)), MOST_TOLD)]
    more = len(found.left_out) + len(odd) - len(left_out)
    rest = (f"{more} more are left out.",) if more else ()
    return [_bounded(each) for each in best], (*left_out, *rest)


def _bounded(chunk: Chunk) -> Chunk:
    content = storable_text(within_budget(chunk.content.strip("\r\n"), LONGEST_CHUNK))
    names = {name: _name(getattr(chunk, name)) for name in ("id", "source", "heading")}
    return chunk.replace(content=content, **names)


def _without(chunk: Chunk) -> str:
    return f"{place_of(_bounded(chunk))} is left out: its score is {chunk.score}."


def _name(text: str) -> str:
    text = text[: LONGEST_NAME + 1]
    cut = text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 1]}…"
    return storable_text(cut)
