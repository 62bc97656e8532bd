"""A run with all its records, and its course as they show it."""
