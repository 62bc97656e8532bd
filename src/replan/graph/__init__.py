"""Which node runs after which."""
