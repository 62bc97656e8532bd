"""A conversation at the terminal: the lines of a person, the turns of a session."""
