"""What outlives a process: SQLite files and PostgreSQL databases, and the memory of one process."""
