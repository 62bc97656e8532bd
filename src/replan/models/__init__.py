"""How a chat model is asked: streamed or whole, again where its server is busy."""
