"""What several commands share: options, signals, and carrying out a run at the terminal."""
