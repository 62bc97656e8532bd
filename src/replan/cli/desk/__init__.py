"""The desk of a person: the keyboard, the questions, and the signals."""
