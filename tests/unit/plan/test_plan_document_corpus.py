"""Documents as people and models write them, and the plan that is read in each."""

from pathlib import Path

from cases import read_page
from replan.plan import PlanDocument, PlanStep, refresh_content
from replan.plan.markdown.outline import MARKS
from replan.plan.option_table import write_options

CORPUS = read_page(Path(__file__).with_name("documents.yaml"))


def shown(step: PlanStep) -> str:
    """Write a step in one line, whatever the document's manner."""
    names = "".join(f" @{name}" for name in step.specialists)
    options = f" ({written})" if (written := write_options(step)) else ""
    under = [
        f" | {name}: {value!r}"
        for name in ("brief", "parameters", "result", "feedback")
        if (value := getattr(step, name))
    ]
    line = f"[{MARKS[step.status]}] {step.id}. {step.description}{names}{options}"
    return line + "".join(under)


def test_a_document_is_read_as_people_mean_it() -> None:
    for name, entry in CORPUS.items():
        plan = PlanDocument.parse(entry["document"]).plan
        assert plan.title == entry.get("title", ""), name
        assert list(map(shown, plan.steps)) == entry["steps"].splitlines(), name


def test_a_document_keeps_its_bytes() -> None:
    for name, entry in CORPUS.items():
        document = PlanDocument.parse(entry["document"])
        assert str(document) == str(document.write(document.plan)) == entry["document"], name


def test_a_document_can_be_turned_round_and_finished_step_by_step() -> None:
    for name, entry in CORPUS.items():
        plan = PlanDocument.parse(entry["document"]).plan
        turned = refresh_content(plan.replace(steps=plan.steps[::-1]))
        assert PlanDocument.parse(turned.content).plan == turned, name
        for step in plan.steps:
            done = plan.step(step.id).replace(
                status="completed", result="Found: > 2\n\n- all", feedback=""
            )
            plan = refresh_content(plan.with_steps(done))
            assert PlanDocument.parse(plan.content).plan == plan, name
