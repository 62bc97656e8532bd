"""The implementations of the ports: models, storage, knowledge, tool servers."""
