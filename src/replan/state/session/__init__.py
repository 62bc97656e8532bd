"""A session between two calls, as its client keeps it."""
