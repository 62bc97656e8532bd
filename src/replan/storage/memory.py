"""A database in the memory of the process, with all tables."""

from replan.storage import schema
from replan.storage.sqlite import MemoryDatabase


def memory_database() -> MemoryDatabase:
    """A new database in memory; it goes when nothing refers to it."""
    return MemoryDatabase(lambda connection: schema.make(connection, {}, ":memory:"))
