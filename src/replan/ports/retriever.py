"""Where knowledge is found: passages for a question, with their sources."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Protocol, cast

from pydantic import Field, JsonValue, model_validator

from replan.plan.model import Value


class SearchRequest(Value):
    """A question to a retriever. Tenant and filters come from settings, never from a model.

    Attributes:
        query: What is asked, as people or models wrote it.
        knowledge_base_ids: Where to look; empty: everywhere.
        top_k: How many chunks at most.
        min_score: The least score that counts.
        filters: What chunks must be of, in the words of the retriever.
        tenant_id: Whose knowledge; empty where there are no tenants.
    """

    query: str
    knowledge_base_ids: tuple[str, ...] = ()
    top_k: int = Field(default=5, ge=1)
    min_score: float = 0.0
    filters: Mapping[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    tenant_id: str = ""


class Chunk(Value):
    """A piece of knowledge that was found.

    Attributes:
        id: Unique in its knowledge base.
        content: Its text.
        score: How well it fits; larger is better. A retriever that says `similarity` means it.
        source: Where it stands: a file, an address.
        line: The line of the source where it begins, counted from 1; of a PDF the page. None where
            nobody knows it.
        heading: The heading that it stands under.
        metadata: What else is known of it.
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
    def _one_score(cls, given: Any) -> Any:
        """Take `similarity` for the score where there is none: the one place that knows both."""
        if not isinstance(given, Mapping) or "similarity" not in given:
            return given
        fields = {**cast("Mapping[str, Any]", given)}
        similarity = fields.pop("similarity")
        if fields.get("score") is None:
            fields["score"] = similarity
        return fields


class SearchResponse(Value):
    """What a retriever found.

    Attributes:
        chunks: The best first.
        left_out: What could not be searched, a sentence each, with the name of the file.
    """

    chunks: Sequence[Chunk] = ()
    left_out: Sequence[str] = ()


class Retriever(Protocol):
    """Finds knowledge."""

    def search(self, request: SearchRequest) -> SearchResponse | Awaitable[SearchResponse]:
        """Find the chunks that fit a question best; a function that is not async gets a thread.

        It may raise: whoever asked goes on without knowledge, and says so.
        """
        ...
