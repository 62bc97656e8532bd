"""What we say to models: `[name]_system_prompt.md` files and the functions that fill them."""
