"""The course of a run, read from its records; pure folds."""
