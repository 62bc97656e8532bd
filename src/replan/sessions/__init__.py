"""The stateless agent: a context in, a result with updates out, no state between calls."""
