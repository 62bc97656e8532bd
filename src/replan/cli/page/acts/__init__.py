"""The acts of the pages: each is shown before it is done, and bound to what was shown."""
