"""A whole pipeline: it is built once, and takes one turn at a time on a thread."""
