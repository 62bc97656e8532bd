"""Cut a text to a budget, with the cut marked."""


def excerpt(text: str, budget: int) -> str:
    """Keep the beginning of a text that is longer than `budget` characters, and say so."""
    if len(text) <= budget:
        return text
    return f"{text[:budget].rstrip()}\n[… {len(text) - budget} characters cut]"
