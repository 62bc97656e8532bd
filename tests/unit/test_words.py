"""The words of the glossary are the ones that are used."""

import ast
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


RENAMED = {
    "can_pass": "is_transient",
    "ends_whole_work": "is_fatal_for_run",
    "seen_in": "visible_messages",
    "OnRecord": "RecordedResults",
    "StepErrand": "StepJob",
    "StepEnd": "StepOutcome",
    "Errand": "RunJob",
    "done_for_another": "run_queued_step",
    "doubts_in": "unresolved_attempts",
    "LastWords": "StderrTail",
    "brought_nothing": "is_unbilled",
    "worked_before": "prior_durations",
    "leans_on_refused": "depends_on_refused",
    "valid_part": "applicable_part",
    "try_changes": "check_changes",
    "open_to_clients": "client_overrides",
    "read_seal": "read_fingerprints",
    "Elsewhere": "StepQueue",
    "Clocks": "ScopeTimers",
    "Terms": "Pricing",
    "Timed": "HasDeadline",
    "Holds": "ThreadLocks",
    "left_open": "previous_plan",
    "kept_from": "source_run_id",
    "kept_results": "carried_results",
    "glimpse": "peek",
    "heard_at": "last_seen_at",
    "Patience": "Retrier",
    "WholeSaver": "SaverMixin",
    "HomeLoop": "RunLoop",
    "Pulse": "LoopWatch",
}
"""Names in the code that said too little, and those that took their place."""


def test_a_name_that_was_replaced_is_not_used_again() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {name}, write {RENAMED[name]}"
        for path in READ
        if path.suffix == ".py"
        for name in sorted(RENAMED.keys() & _names_in(path))
    ]
    assert not found, "\n".join(found)


def _names_in(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8")
    if RENAMED.keys().isdisjoint(re.findall(r"\w+", text)):
        return set()
    nodes = ast.walk(ast.parse(text))
    return {getattr(node, field, "") for node in nodes for field in ("id", "attr", "name", "arg")}


def test_an_attempt_is_called_no_try() -> None:
    prose = {path: _CODE.sub("", path.read_text(encoding="utf-8")) for path in NOUNS_READ}
    found = [
        f"{path.relative_to(ROOT)}: '{noun[0]}', write 'attempt'"
        for path, text in prose.items()
        for noun in _NOUN.finditer(text)
    ]
    assert not found, "\n".join(found)
