"""Embeddings over the OpenAI protocol, with token counts, which LangChain's own lack."""

import json
from collections.abc import Sequence
from typing import Any, cast

import openai
from langchain_core.embeddings import Embeddings
from pydantic import SecretStr

from replan.adapters.model_http import trusted


class OpenAIEmbeddings(Embeddings):
    """Asks `/embeddings` of a server; texts go as texts, since few servers know tokens.

    Attributes:
        model: What the server calls the model.
    """

    def __init__(self, model: str, *, base_url: str, api_key: SecretStr, timeout: float) -> None:
        self.model = model
        self._base_url = base_url
        self._api_key = api_key
        self._timeout = timeout

    def embed_counted(self, texts: Sequence[str]) -> tuple[list[list[float]], int]:
        """Return a vector for each text, and the tokens that the server counted, or 0."""
        # Connections of its own for each call: it comes from any thread, and few come. A key goes
        # to no other server.
        with (
            openai.DefaultHttpxClient(follow_redirects=False, verify=trusted()) as http,
            openai.OpenAI(
                base_url=self._base_url,
                api_key=self._api_key.get_secret_value(),
                timeout=self._timeout,
                # Whoever searches continues without.
                max_retries=0,
                http_client=http,
            ) as client,
        ):
            answer = client.embeddings.create(
                model=self.model, input=list(texts), encoding_format="float"
            )
        rows: Any = answer.data if isinstance(cast("object", answer.data), list) else None
        if rows is None:
            said = json.dumps(getattr(answer, "error", None), default=str)
            raise ValueError(
                f"The server {self._base_url} returned no embeddings of {self.model} (its error: "
                f"{said}). Check that it has this model, and that the model makes embeddings."
            )
        usage: Any = answer.usage
        placed = sorted(rows, key=lambda each: each.index)
        return [each.embedding for each in placed], getattr(usage, "prompt_tokens", 0)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return a vector for each text."""
        return self.embed_counted(texts)[0]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a text."""
        return self.embed_documents([text])[0]
