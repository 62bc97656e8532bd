"""Vectors of texts: asked for in bounded time, and charged to the run like the calls of models."""

import math
import sqlite3
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self, TypeVar, cast

from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import RunnableConfig

from replan.errors import RetrievalError
from replan.failures import describe, is_fatal_for_run
from replan.langgraph_inside.callbacks import report_call

T = TypeVar("T")

SECONDS = 15.0
"""How long one call of a search may take; one without vectors is better than none."""


class EmbeddingError(Exception):
    """What a model gave cannot be used as vectors."""


@dataclass(frozen=True)
class Embedding:
    """A model for embeddings, as one search asks it."""

    embeddings: Embeddings  # the model
    name: str = ""  # what the team calls it; empty if it was not given by a name
    # The configuration of the step that searches; its callbacks count and charge.
    config: RunnableConfig | None = None
    seconds: float | None = None  # how long a call may take; None: as long as it takes

    @property
    def names(self) -> tuple[str, ...]:
        """Its names, first the one that is used in events."""
        return names_of(self.embeddings, self.name)

    def of_texts(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vectors of passages."""
        return self._charged(texts, partial(_of_documents, self.embeddings, texts))

    def of_query(self, text: str) -> list[float]:
        """Return the vector of a question; some models distinguish questions from passages."""
        (vector,) = self._charged([text], partial(_of_query, self.embeddings, text))
        return vector

    def _charged(
        self, texts: Sequence[str], ask: Callable[[], tuple[list[list[float]], int]]
    ) -> list[list[float]]:
        with _reported(self.names, texts, self.config) as ended:
            vectors, tokens = _in_time(ask, self.seconds)
            _check(vectors, texts)
            ended(tokens)
        return vectors


class WithEmbeddings:
    """Knowledge, a dataclass, with a model for embeddings or the name of one that a team builds."""

    embeddings: Any  # an Embeddings, a name, or None
    built: Any  # the model of the name, once there is one

    def with_embeddings(self, built: Embeddings) -> Self:
        """Return a copy with this model, which was built for the name in `embeddings`."""
        return replace(cast("Any", self), built=built)

    @property
    def embedding(self) -> Embedding | None:
        """The embedding model; None without one, or if it is not built yet."""
        if isinstance(self.embeddings, str):
            return None if self.built is None else Embedding(self.built, self.embeddings)
        return None if self.embeddings is None else Embedding(self.embeddings)

    def asked_by(self, config: RunnableConfig | None, seconds: float | None) -> Embedding:
        """The embedding model for a search with a configuration, and the time that it has."""
        if self.embedding is None:
            reason = (
                f"{self.embeddings} is the name of a model, and no graph of a team has built it"
            )
            raise RetrievalError(reason, "Give embeddings=..., an Embeddings of LangChain.")
        return replace(self.embedding, config=config, seconds=seconds)


def charged_call(
    embeddings: object, text: str, config: RunnableConfig | None, work: Callable[[], T]
) -> T:
    """Do some work that asks a model for the vector of a text; its tokens are not known."""
    if embeddings is None:
        return work()
    with _reported(names_of(embeddings), [text], config):
        return work()


@contextmanager
def _reported(
    names: Sequence[str], texts: Sequence[str], config: RunnableConfig | None
) -> Generator[Callable[[int], None]]:
    """Tell the callbacks of a call that is made inside; it may say how many tokens it took."""
    # LangChain reports no embeddings to callbacks, so the call is reported like that of a model.
    call = report_call(config, names, [HumanMessage(text) for text in texts])
    counted: list[int] = []
    try:
        yield counted.append
    except BaseException as error:
        call.on_llm_error(error)
        raise
    tokens = sum(counted)
    usage: Any = {"input_tokens": tokens, "output_tokens": 0, "total_tokens": tokens}
    message = AIMessage("", usage_metadata=usage if tokens else None)
    call.on_llm_end(LLMResult(generations=[[ChatGeneration(message=message)]]))


def found_or_problem(embedding: Embedding, ask: Callable[[], T]) -> tuple[T | None, str]:
    """Return what a model finds; where it fails None, and a sentence that says so."""
    try:
        return ask(), ""
    except (RetrievalError, sqlite3.Error):
        raise
    except Exception as error:
        # A model is code of others.
        if is_fatal_for_run(error):
            raise
        problem = f"{embedding.names[0]} failed, so passages are found by their words alone"
        return None, f"{problem}: {describe(error).rstrip('.')}."


def embedded_text(heading: str, text: str) -> str:
    """What of a passage its vector is of."""
    return f"{heading}\n{text}" if heading else text


def _check(vectors: Sequence[Sequence[float]], texts: Sequence[str]) -> None:
    if len(vectors) != len(texts):
        raise EmbeddingError(f"it returned {len(vectors)} vectors for {len(texts)} texts")
    try:
        is_whole = len({len(each) for each in vectors}) == 1 and all(vectors)
        is_whole = is_whole and all(math.isfinite(number) for each in vectors for number in each)
    except TypeError:
        is_whole = False
    if not is_whole:
        raise EmbeddingError("it did not return vectors of numbers")


def names_of(embeddings: object, name: str = "") -> tuple[str, ...]:
    """What a model for embeddings is called: by its provider, or by its class, and by the team."""
    given = (getattr(embeddings, each, None) for each in ("model", "model_name", "model_id"))
    own = [each for each in given if isinstance(each, str) and each]
    found = (*own[:1], *([name] if name else []))
    return tuple(dict.fromkeys(found)) or (type(embeddings).__name__,)


def _of_documents(embeddings: Embeddings, texts: Sequence[str]) -> tuple[list[list[float]], int]:
    counted: Any = getattr(embeddings, "embed_counted", None)
    if callable(counted):
        return cast("tuple[list[list[float]], int]", counted(texts))
    return embeddings.embed_documents(list(texts)), 0


def _of_query(embeddings: Embeddings, text: str) -> tuple[list[list[float]], int]:
    if callable(getattr(embeddings, "embed_counted", None)):
        return _of_documents(embeddings, [text])
    return [embeddings.embed_query(text)], 0


def _in_time(work: Callable[[], T], seconds: float | None) -> T:
    """Do some work in a thread that is abandoned after a time; where there is none, do it here."""
    if seconds is None:
        return work()
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001 - foreign code; who waits gets it
            done.set_exception(error)

    threading.Thread(target=run, name="replan-embedding", daemon=True).start()
    try:
        return done.result(seconds)
    except TimeoutError as error:
        if done.done():
            raise
        raise EmbeddingError(f"it did not answer within {seconds:g} s") from error
