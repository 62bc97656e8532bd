"""The sub-thread of the revision, in which the figures are checked."""
