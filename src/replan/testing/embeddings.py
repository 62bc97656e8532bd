"""Embeddings without a model: texts that have words in common have vectors that are near."""

import hashlib
import json
import math
import re
from typing import Any

from replan.testing.wire import BadRequest

WIDTH = 64
"""Numbers of a vector."""

_WORD = re.compile(r"\w+")


def vector_of(text: str) -> list[float]:
    """Return a vector of length 1 in which each word is at its own place, by its hash."""
    vector = [0.0] * WIDTH
    for word in _WORD.findall(text.casefold()):
        digest = hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()
        vector[digest[0] % WIDTH] += 1.0 if digest[1] % 2 else -1.0
    length = math.sqrt(sum(each * each for each in vector))
    return [each / length for each in vector] if length else [1.0, *vector[1:]]


def texts_in(raw: bytes) -> tuple[str, list[str]]:
    """The model and the texts of a request.

    Raises:
        BadRequest: It cannot be read.
    """
    try:
        body = json.loads(raw)
        given = body["input"]
        texts: tuple[Any, ...] = (given,) if isinstance(given, str) else tuple(given)
    except (ValueError, KeyError, TypeError) as error:
        raise BadRequest(f"The request cannot be read: {error}") from error
    if not texts or any(not isinstance(each, str) for each in texts):
        raise BadRequest("'input' must be a text or a list of texts.", "input")
    return str(body.get("model", "")), [*texts]


def embeddings_body(model: str, texts: list[str]) -> bytes:
    """The answer, with the words of the texts as its tokens."""
    data = [
        {"object": "embedding", "index": index, "embedding": vector_of(text)}
        for index, text in enumerate(texts)
    ]
    tokens = sum(len(_WORD.findall(text)) for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return json.dumps({"object": "list", "model": model, "data": data, "usage": usage}).encode()
