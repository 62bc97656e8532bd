"""One step of one specialist: what identifies it, how it is done, and its outcome."""
