"""The log of each run: what happened in it, row by row."""
