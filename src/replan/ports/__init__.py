"""What we need from outside, as protocols, and the services that bundle it."""
