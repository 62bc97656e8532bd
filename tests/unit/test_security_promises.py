"""Every promise of SECURITY.md names tests that are there."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
SESSIONS = re.findall(r"`(tests/[\w/]+\.md)::([^`]+)`", TEXT)
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", TEXT)


def test_each_promise_names_a_test():
    promises = TEXT.partition("## What Replan promises")[2].partition("\n## ")[0]
    sections = promises.split("\n### ")[1:]
    without = [each.partition("\n")[0] for each in sections if "::test_" not in each]
    assert without == ["Network"]


def test_a_test_that_is_named_is_there():
    names = {
        file: {
            node.name
            for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8")))
            if hasattr(node, "name")
        }
        for file in {file for file, _ in NAMED}
    }
    assert [f"{file}::{name}" for file, name in NAMED if name not in names[file]] == []


def test_a_session_that_is_named_is_on_its_page():
    assert SESSIONS
    told = {page: (ROOT / page).read_text(encoding="utf-8") for page, _ in SESSIONS}
    assert [name for page, name in SESSIONS if f"\n## {name}\n" not in told[page]] == []
