"""One step at one specialist: by what it is known, and what came of it."""
