"""The words of the glossary are the ones that are used."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
REPLACED = {
    "mend": "fix",
    "mends": "fixes",
    "mended": "fixed",
    "so-manieth": "n-th",
    "so manieth": "n-th",
    "how-manieth": "index",
    "for ever": "forever",
    "inside of": "inside",
    "outside of": "outside",
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
# The glossary explains the word; a prompt's words are measured with models.
NOUNS_READ = [path for path in READ if path.name != "glossary.md" and "prompts" not in path.parts]


def test_a_word_that_was_replaced_stands_nowhere() -> None:
    assert len(READ) > 400
    texts = {path: path.read_text(encoding="utf-8") for path in READ}
    found = [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, word.start()) + 1}: '{word[0]}', "
        f"write '{REPLACED[word[0].lower()]}'"
        for path, text in texts.items()
        for word in _PATTERN.finditer(text)
    ]
    assert not found, "\n".join(found)


def test_an_attempt_is_called_no_try() -> None:
    prose = {path: _CODE.sub("", path.read_text(encoding="utf-8")) for path in NOUNS_READ}
    found = [
        f"{path.relative_to(ROOT)}: '{noun[0]}', write 'attempt'"
        for path, text in prose.items()
        for noun in _NOUN.finditer(text)
    ]
    assert not found, "\n".join(found)
