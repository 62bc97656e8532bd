"""Questions of runs to people, and requests of people to runs."""
