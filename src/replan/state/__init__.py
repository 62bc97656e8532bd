"""What flows through the graph."""
