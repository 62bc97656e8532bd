"""The edges that serve a graph to others."""
