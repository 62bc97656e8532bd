"""Repositories of threads."""
