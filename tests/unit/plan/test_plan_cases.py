"""What is found in a plan, and in what people and models make of it.

`test_plan_cases.yaml` has texts below what they show, who looks at them (`by`), and what is found.
Texts beside a `plan` are revisions of it, edits of its settled document (`OLD => NEW`, with `---`
between them), or the steps that are taken out.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cases import cases_of, check_cases
from replan.plan import (
    PlanDocument,
    TaskPlan,
    blocked_steps,
    critical_path,
    parse_plan_from_markdown,
    readiness,
    ready_steps,
    rerun_reasons,
    sealed,
    skippable_steps,
    unmet_steps,
    width,
)
from replan.plan.conflicts import write_conflicts
from replan.plan.dependencies import steps_left_out
from replan.plan.markdown.overlooked import overlooked, prose_between
from replan.plan.merging import matched, merge_revision, without_steps


def awaited(_: str, text: str) -> dict[str, Any]:
    plan = parse_plan_from_markdown(text)
    looks = (ready_steps, blocked_steps, skippable_steps, unmet_steps, steps_left_out)
    found = {look.__name__: " ".join(str(step.id) for step in look(plan)) for look in looks}
    steps = {f"{step.id}": readiness(step, plan.by_id) for step in plan.open_steps()}
    path = " ".join(map(str, critical_path(plan)))
    lengths = {"width": width(plan), "critical_path": path}
    return steps | {name: each for name, each in (found | lengths).items() if each}


def in_conflict(_: str, text: str) -> dict[str, str]:
    return {each.resource: str(each) for each in write_conflicts(PlanDocument.parse(text).plan)}


def taken_for_text(_: str, text: str) -> list[str]:
    found = (*overlooked(text), *prose_between(text))
    return [f"{each.kind}, step {each.step}: {each}" for each in found]


def mistaken(_: str, text: str) -> list[str]:
    found = PlanDocument.recover(text).mistakes
    return [f"{each.line}:{each.column} {each.code}: {each.reason} {each.fix}" for each in found]


def revised(plan: str, text: str) -> dict[str, Any]:
    known = parse_plan_from_markdown(plan)
    new = matched(known, PlanDocument.parse(text, known=known.by_id).plan)
    merged, unsaid = merge_revision(known, new)
    left_out = " ".join(str(step.id) for step in unsaid)
    return {"means": lines_of(new), "becomes": lines_of(merged), "leaves_out": left_out}


def taken_out(plan: str, text: str) -> list[str]:
    return lines_of(without_steps(parse_plan_from_markdown(plan), set(map(int, text.split()))))


def lines_of(plan: TaskPlan) -> list[str]:
    return [
        f"{step.id} {step.description} ({step.status})"
        + f" after {[*step.awaits]}" * bool(step.awaits)
        for step in plan.steps
    ]


def run_again(plan: str, text: str) -> list[str]:
    document = sealed(PlanDocument.parse(plan).plan).content
    for edit in text.split("\n---\n"):
        old, new = edit.split(" => ")
        assert document.count(old) == 1, old
        document = document.replace(old, new)
    return [str(each) for each in rerun_reasons(PlanDocument.parse(document).plan)]


READERS: dict[str, Callable[[str, str], Any]] = {
    each.__name__: each
    for each in (awaited, in_conflict, taken_for_text, mistaken, revised, taken_out, run_again)
}


def look(section: dict[str, Any], text: str) -> Any:
    plan = section.get("plan", "")
    plan = Path(__file__).with_name(plan).read_text("utf-8") if plan.endswith(".md") else plan
    return READERS[section["by"]](plan, text)


@pytest.mark.parametrize("name", cases_of(__file__))
def test_in_a_text_is_found_what_the_page_has(name: str) -> None:
    check_cases(__file__, name, look)
