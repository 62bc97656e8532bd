"""The memory of earlier messages of a conversation: pure functions of the state."""
