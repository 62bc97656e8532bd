"""Who works on a thread."""
