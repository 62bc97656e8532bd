"""A run while it goes on: as a plan that lives, as lines, or as JSON."""
