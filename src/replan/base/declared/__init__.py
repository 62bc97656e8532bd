"""What people declare in Python or YAML; all mistakes are reported together, with positions."""
