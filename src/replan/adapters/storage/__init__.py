"""Where runs are kept: state, journal and book in one SQLite file or PostgreSQL database."""
