"""The stored events of a run: numbered, with their long texts stored separately."""
