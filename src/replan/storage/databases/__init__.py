"""Databases: SQLite files and PostgreSQL, their tables, faults and encryption."""
