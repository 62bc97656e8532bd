"""The host's steps: one node, one file, one async function."""
