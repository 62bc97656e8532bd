"""The options of knowledge, and the knowledge that a step received."""

import logging
import sys
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, cast

from pydantic import Field, JsonValue, model_validator

from replan.base.values import Value
from replan.state.options import Options, joined

logger = logging.getLogger(__name__)

RagMode = Literal["none", "stuff", "map_reduce"]
"""No search; what is found as it is; or what a model made of each piece, merged."""

MOST_CHUNKS = 50
"""Chunks of one search."""


ANY_SCORE = -sys.float_info.max
"""The minimum score where none is set; rerankers and distances have scores below 0."""

Filter = str | int | float | bool | list[str]
"""What a filter asks of a chunk."""


class RAGOptions(Options):
    """Which knowledge a step gets; omitted fields come from the level outside.

    From the outermost level: none and the numbers below, the Team, its Host or a Specialist, the
    yaml block of a step (with rag_ before each name), RunSettings.

    Attributes:
        mode: No search (none), the passages as they were found (stuff), or a model's notes about
            them (map_reduce). The default is stuff if the team has knowledge, else none.
        top_k: The maximum number of passages; by default 5.
        min_score: The minimum score of a passage; by default any.
        use_summary: Whether a model shortens the passages in mode stuff; by default not.
        map_max_chunks: The maximum number of passages that a model is asked about in mode
            map_reduce; by default 5.
        timeout_seconds: The time for the search, and for each call of a model; by default 30.
        knowledge_base_ids: Which knowledge bases to search; only in settings. By default all.
        filters: Which passages to search, such as file: policies/*; only in settings.
    """

    prefix: ClassVar[str] = "rag_"
    settings_only: ClassVar[frozenset[str]] = frozenset({"knowledge_base_ids", "filters"})

    mode: RagMode | None = None
    top_k: int | None = Field(default=None, ge=1, le=MOST_CHUNKS)
    min_score: float | None = Field(default=None, allow_inf_nan=False)
    use_summary: bool | None = None
    map_max_chunks: int | None = Field(default=None, ge=1, le=MOST_CHUNKS)
    timeout_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    knowledge_base_ids: Sequence[str] | None = None
    filters: Mapping[str, Filter] | None = None


NO_KNOWLEDGE = RAGOptions(
    mode="none",
    top_k=5,
    min_score=ANY_SCORE,
    use_summary=False,
    map_max_chunks=5,
    timeout_seconds=30.0,
    knowledge_base_ids=(),
    filters={},
)
"""The defaults."""

SEARCHED = RAGOptions(mode="stuff")
"""The default options of a team that has knowledge."""


class Chunk(Value):
    """A piece of knowledge that was found.

    Attributes:
        id: Unique in its knowledge base.
        content: Its text.
        score: How well it fits; larger is better. `similarity` is another name for it.
        source: Where it is: a file, an address.
        line: The line of the source where it begins, counted from 1; of a PDF the page, of a
            DOCX the paragraph. None if unknown.
        heading: The heading that it is under.
        metadata: What else is known about it.
    """

    id: str = ""
    content: str
    score: float = 0.0
    source: str = ""
    line: int | None = Field(default=None, ge=1)
    heading: str = ""
    metadata: Mapping[str, JsonValue] = Field(default_factory=dict[str, JsonValue])

    @model_validator(mode="before")
    @classmethod
    def _one_score(cls, value: Any) -> Any:
        """Take `similarity` as the score if there is none: the only place that knows both."""
        if not isinstance(value, Mapping):
            return value
        fields = {**cast("Mapping[str, Any]", value)}
        if "similarity" not in fields:
            return fields
        similarity = fields.pop("similarity")
        if fields.get("score") is None:
            fields["score"] = similarity
        return fields


class Source(Value):
    """The source of a passage that a step got.

    Attributes:
        source: The file, or the address.
        line: Its first line, counted from 1; of a PDF the page, of a DOCX the
            paragraph. None if unknown.
        last_line: Its last line.
        heading: The heading that it is under.
        score: How well it fitted the step; larger is better.
    """

    source: str
    line: int | None = None
    last_line: int | None = None
    heading: str = ""
    score: float = 0.0

    @property
    def place(self) -> str:
        """The place in a mark that cites its beginning."""
        return self.source if self.line is None else f"{self.source}:{self.line}"


class Knowledge(Value):
    """The result of a search for a step.

    Attributes:
        text: What the step is given.
        sources: Where it is.
        unused: What was found and is not given, since it does not help or its score is too low,
            a sentence each.
        failed: What is missing or longer, since a model failed or no score is high enough, a
            sentence each.
    """

    text: str = ""
    sources: tuple[Source, ...] = ()
    unused: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


def knowledge_options(*levels: RAGOptions) -> RAGOptions:
    """Combine the levels, the innermost last; every field is set."""
    return joined(NO_KNOWLEDGE, *levels)


def asks_for_knowledge(options: RAGOptions) -> bool:
    """Whether the options ask for knowledge."""
    return options.mode not in (None, "none")


def log_unused_knowledge_options(*levels: RAGOptions) -> None:
    """Log what is said about knowledge by a team that has none."""
    if any(map(asks_for_knowledge, levels)):
        logger.warning("rag has no effect without knowledge")


def calls_of_knowledge(options: RAGOptions) -> int:
    """The most calls of a model that read what one search finds."""
    set_options = options.given
    shortened = int(set_options["use_summary"] and set_options["mode"] != "none")
    if set_options["mode"] != "map_reduce":
        return shortened
    return min(set_options["top_k"], set_options["map_max_chunks"]) + 1 + shortened
