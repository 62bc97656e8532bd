"""What finds the command and the values of slots in what a user says."""
