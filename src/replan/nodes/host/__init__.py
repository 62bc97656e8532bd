"""What the host's nodes share: calling its model, reading replies, asking again, streaming."""
