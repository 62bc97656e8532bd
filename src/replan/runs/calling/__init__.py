"""A graph of a team, called: what a call means to it, and who may work on a thread meanwhile."""
