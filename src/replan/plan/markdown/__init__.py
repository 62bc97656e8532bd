"""The plan as a Markdown document: read, and written back line by line."""
