"""The terminal: `replan run` and the other commands, and the page that `replan ui` opens."""
