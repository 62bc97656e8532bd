"""The paths of fields."""

Where = tuple[str | int, ...]
"""The keys and numbers that lead to a value."""


def field_path(where: Where) -> str:
    """Write a path as people do, as in `specialists[1].name`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in where)
    return "".join(parts).removeprefix(".")
