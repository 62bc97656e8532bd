"""The notes that the article is about."""

import re
from pathlib import Path

NOTES = (Path(__file__).parents[1] / "data" / "notes" / "returns-policy.md").read_text("utf-8")
FIGURE = re.compile(r"\d+")


def sentences(text: str) -> list[str]:
    """Divide a text."""
    return re.split(r"(?<=[.])\s+", text)


def headings() -> list[str]:
    """Find the headings of the notes."""
    return re.findall(r"(?m)^## (.+)$", NOTES)


def source_of(claim: str) -> str:
    """Find the sentence of the notes that has the most words of a claim."""
    lines = [each for each in NOTES.splitlines() if not each.startswith("#")]
    passages = sentences(" ".join(" ".join(lines).split()))
    words = set(re.findall(r"[a-z]+", claim.lower()))
    return max(passages, key=lambda each: len(words & set(re.findall(r"[a-z]+", each.lower()))))
