"""A run as it is kept: how it went, who decided what, and its outcome."""
