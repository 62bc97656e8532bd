"""The page of `replan ui`: understand a run, and act on it."""
