"""What a run spends: asked for before each call, counted after it, bounded by time."""
