"""Prompts: `[name]_system_prompt.md` files, the functions that fill them, and the replies."""
