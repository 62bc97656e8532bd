"""What a run spends: reserved before each call, settled after it, and bounded in time."""
