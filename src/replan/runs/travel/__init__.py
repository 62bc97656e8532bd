"""A run that goes from one process, storage or machine to another."""
