"""What the nodes of the host share: how it asks, reads, asks again and streams."""
