"""Runs that wait in a queue on PostgreSQL, and the workers that take them up."""
