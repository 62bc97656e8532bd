"""The words of the glossary are the ones that are used."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REPLACED = {
    "mend": "fix",
    "mends": "fixes",
    "mended": "fixed",
    "so-manieth": "n-th",
    "so manieth": "n-th",
    "how-manieth": "index",
    "for ever": "forever",
}
"""Words that the glossary and CONTRIBUTING.md replace, and what is written instead."""

_PATTERN = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, REPLACED))})(?![\w-])", re.IGNORECASE)
READ = [
    *(path for path in sorted((ROOT / "src").rglob("*")) if path.suffix in (".py", ".md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
]


@pytest.mark.parametrize("path", READ, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_word_that_was_replaced_stands_nowhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found = [
        f"line {text.count(chr(10), 0, word.start()) + 1}: '{word[0]}', "
        f"write '{REPLACED[word[0].lower()]}'"
        for word in _PATTERN.finditer(text)
    ]
    assert not found, "\n".join(found)
