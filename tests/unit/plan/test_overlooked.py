"""What looks like a part of a plan and was read as text is told."""

from pathlib import Path

from cases import read_page
from replan.plan.markdown.overlooked import overlooked

CASES = read_page(Path(__file__).with_name("mistakes.yaml"))["overlooked"]


def kinds(text):
    return [(each.line, each.kind) for each in overlooked(text)]


def test_what_looks_like_a_part_of_a_plan_and_is_text_is_told_and_nothing_else():
    for kind, lines in CASES.items():
        told = [] if kind == "nothing" else [(2, kind)]
        for line in lines.splitlines():
            assert kinds(f"- [ ] 1. First @a\n- [ ] 2. {line}\n") == told, line
