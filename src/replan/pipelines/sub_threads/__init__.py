"""Sub-threads: their agent, the handlers that start them, and the rounds that they are made of."""
