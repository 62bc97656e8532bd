"""Who calls the server: tokens, whom they stand for, and how much they may take."""
