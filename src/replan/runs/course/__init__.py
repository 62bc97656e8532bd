"""What a run did, read from what is kept of it; pure folds."""
