"""What somebody can do on the pages: each act is shown before it is done, and bound to what was."""
