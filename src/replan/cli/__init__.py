"""The terminal: `replan run` and the other commands."""
