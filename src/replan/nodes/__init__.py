"""The nodes of the graph: one file and one async function for each."""
