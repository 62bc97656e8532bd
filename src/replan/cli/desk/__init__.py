"""Where a person sits: the keyboard, what they are asked, and the signals that they send."""
