"""Families of replies: each module has the families of one kind, and registers them."""
