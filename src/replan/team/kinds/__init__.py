"""The kinds of specialists: a file for each, with its fields, its rules and how it is built."""
