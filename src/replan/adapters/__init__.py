"""What stands behind the ports: models, journal."""
