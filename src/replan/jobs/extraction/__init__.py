"""Extraction of the command and the values of slots from what a user says."""
