"""Plans as models write them: found in a text, and written as documents."""
