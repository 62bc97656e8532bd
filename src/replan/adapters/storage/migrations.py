"""What turns storage of one format into storage of the next.

To add one: change `schema`, write the function, name it last in `MIGRATIONS`, and make a sample
(`tests/samples/make.py`). A migration speaks SQL of its own and leaves `schema` alone, which is
that of the newest format only. It holds for SQLite and PostgreSQL, and where something is encrypted
it is sealed.
"""

from collections.abc import Callable

from sqlalchemy import Connection, text

Migration = Callable[[Connection], None]
"""Changes storage inside the transaction that is open on the connection."""


def _name_the_release(connection: Connection) -> None:
    """Make room for the release that wrote the format: an older one can say what to install."""
    statement = text("INSERT INTO replan_facts (name, value) VALUES ('release', :nothing)")
    connection.execute(statement, {"nothing": b""})


MIGRATIONS: tuple[Migration, ...] = (_name_the_release,)
"""From format 1 to 2, and so on."""
