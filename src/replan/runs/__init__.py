"""A run as a thing of its own: started, followed, answered, stopped, looked at, from any door."""
