"""The client of an agent: it keeps the sessions of a user, and takes each turn of them once."""
