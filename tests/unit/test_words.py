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
    *(
        ROOT / name
        for name in (
            "README.md",
            "ARCHITECTURE.md",
            "CONTRIBUTING.md",
            "SECURITY.md",
            "examples/README.md",
        )
    ),
]
_CODE = re.compile(r"(?ms)^ *(`{3,}).*?^ *\1 *$|`[^`\n]+`")
# What stands before the noun, and before no verb.
_NOUN = re.compile(
    r"\b(?:(?:an?|one|two|three|each|every|per|the|this|that|its|first|next|newest|last|another|"
    r"further|no|more|many|all|of|between|\d+) (?:try|tries)|tries (?:of|beside|that))\b",
    re.IGNORECASE,
)
_NOT_READ = ("glossary.md", "events.md", "terminal.md")
PAGES = [
    path
    for path in READ
    if path.suffix == ".md" and path.name not in _NOT_READ and "prompts" not in path.parts
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


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_an_attempt_is_called_no_try(path: Path) -> None:
    prose = _CODE.sub("", path.read_text(encoding="utf-8"))
    assert [found[0] for found in _NOUN.finditer(prose)] == [], "write 'attempt'"
