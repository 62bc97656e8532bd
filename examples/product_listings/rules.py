"""The business rules of the job."""

KINDS: dict[str, type | tuple[type, ...]] = {
    "title": str,
    "price": (int, float),
    "description": str,
}


def known_changes(changes: dict[str, object]) -> str | None:
    """Return what is wrong with the changes of a listing; None if they are valid."""
    unknown = [name for name in changes if name not in KINDS]
    if unknown:
        return f"there is no field {', '.join(unknown)}; there are {', '.join(KINDS)}."
    wrong = [name for name, value in changes.items() if not isinstance(value, KINDS[name])]
    if wrong:
        return f"{', '.join(wrong)} has a value of the wrong kind."
    price = changes.get("price", 1)
    return None if isinstance(price, int | float) and price > 0 else "a price is more than 0."
