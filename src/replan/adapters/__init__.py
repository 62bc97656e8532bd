"""What is behind the ports: models, journal."""
