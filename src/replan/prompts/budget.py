"""Cut a text to a budget of characters, with the cut marked."""


def within_budget(text: str, budget: int) -> str:
    """Keep the beginning of a text that is longer than its budget, and say how much is missing."""
    if len(text) <= budget:
        return text
    return f"{text[:budget].rstrip()}\n[… {len(text) - budget} characters cut]"
