"""The stateless agent: a context in, a result with updates out, and nothing kept between calls."""
