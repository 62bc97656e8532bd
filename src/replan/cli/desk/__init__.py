"""The desk of a person: the keyboard and the questions."""
