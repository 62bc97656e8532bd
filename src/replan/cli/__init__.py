"""The terminal: `replan run` and what belongs to it."""
