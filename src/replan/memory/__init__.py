"""What a run remembers of what was said before it: pure, from the state."""
