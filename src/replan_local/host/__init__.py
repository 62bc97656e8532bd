"""The offline host: a chat model of fixed rules."""
