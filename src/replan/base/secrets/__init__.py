"""Secrets: values that are known to be secret, and texts that look like one."""
