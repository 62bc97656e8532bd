"""How a chat model is called: streamed or whole, and again if its server is busy."""
