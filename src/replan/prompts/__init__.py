"""Prompts: `[name]_system_prompt.md` files and the functions that fill them."""
