"""What several commands share: options, and carrying out a run at the terminal."""
