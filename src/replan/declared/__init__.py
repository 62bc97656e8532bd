"""What a person declares, in Python or YAML; all its mistakes are told at once, in their places."""
