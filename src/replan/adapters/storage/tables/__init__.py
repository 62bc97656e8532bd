"""The tables of a storage, and what is kept in them besides checkpoints."""
