"""What an operator may set: team files, read with the places of their mistakes."""
